"""Registered kernels as steps of a program: called at their addresses, with the arrays' extents.

A node ``kernel`` has dense arrays as operands, and then float64 scalars; each of its results is an ``item`` of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.ir import access_map, builder, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import limit
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.matrix_ops import is_dense
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.ir.unsupported import UnsupportedError
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.errors import AttrError, BuildError, NotUsableError


class NamedKernel:
    """What a ``kernel`` node computes: a row's kernel, whose sizes are the `values` of its symbols.

    `attr`: that of the traced call; `numbers`: the fields that are scalar operands, behind the arrays.
    `serves_all_sizes`: the generated kernel is called for sizes of other classes, too: it depends on none, and grown
    sequences need no code of their own.
    """

    def __init__(
        self, attr: Any, values: Mapping[str, Number], numbers: Sequence[str], *, serves_all_sizes: bool = False
    ) -> None:
        self.attr, self.values, self.numbers = attr, dict(values), tuple(numbers)
        self.serves_all_sizes = serves_all_sizes
        self.__name__ = attr.name

    def run(self, sizes: Mapping[str, int], operands: Sequence[Any]) -> list[Any]:
        """Return the results for some sizes, in the kernel's own shapes. Raises what the kernel does."""
        from jitkernels.dispatch.kernel_cache import KernelFuncs

        numbers = operands[len(operands) - len(self.numbers) :]
        number_fields = {name: float(number) for name, number in zip(self.numbers, numbers, strict=True)}
        own = {name: size for name, size in sizes.items() if name not in self.attr.derived}
        attr = type(self.attr)(**{**self.attr.fields(), **own, **number_fields})
        signature = attr.signature()
        arrays = [
            np.require(array, operand.numpy, ["C", "A"]).reshape(operand.shape)
            for array, operand in zip(operands, signature.inputs, strict=False)
        ]
        outputs = [np.empty(output.shape, output.numpy) for output in signature.outputs]
        KernelFuncs.cache().of_class(attr).run_as(attr, [*arrays, *outputs])
        return outputs

    def operations(self, values: Mapping[str, int]) -> int:
        """The arithmetic operations for some values of the symbols. Raises KeyError where a size needs another one."""
        sizes = {name: symbolic_dims.evaluated(size, values) for name, size in self.values.items()}
        own = {name: size for name, size in sizes.items() if name not in self.attr.derived}
        return int(type(self.attr)(**{**self.attr.fields(), **own}).operations())

    @unlocked_cached_property
    def external(self) -> External | None:
        """The kernel that serves all sizes of the class; None if there is none, or NumPy is pinned."""
        from jitkernels.runtime.loading import loader

        if self._source is None:
            return None
        result: External = loader.entry_of(self._source, self.attr.signature().c_arguments)
        return result

    @unlocked_cached_property
    def checked(self) -> tuple[External, External] | None:
        """The entry of a kernel in parts, and its check, which the code around it calls first; None for others."""
        from jitkernels.runtime.loading import loader

        if not getattr(self._source, "parts", ()):
            return None
        return loader.checked_entry_of(self._source, self.attr.signature().c_arguments)

    @property
    def sizes(self) -> list[Number]:
        """The integers that the kernel takes."""
        return [self.values.get(name, value) for name, value in self.attr.signature().integers]

    def begin_parts(self, sizes: Sequence[Number]) -> None:
        """Let other processes build the parts that these sizes need, and that are not there."""
        from jitkernels.runtime.loading import build_ahead, lazy_link

        if not build_ahead.is_on():
            return
        names = [name for name, _ in self.attr.signature().integers]
        now = dict(zip(names, map(symbolic_dims.value_of, sizes), strict=True))
        build_ahead.begin_lazy(one.source for one in lazy_link.needed_by(self._source, now))

    @property
    def is_pitched(self) -> bool:
        """Whether its results may be columns of larger arrays."""
        return bool(getattr(self._source, "pitched", False))

    @unlocked_cached_property
    def _source(self) -> Any:
        """The source of that kernel, or None."""
        from jitkernels.selection.select import choose_for_class

        try:
            own = {name: value for name, value in self.values.items() if name not in self.attr.derived}
            most = {name: _most(value) for name, value in own.items()}
            now = {name: symbolic_dims.value_of(value) for name, value in most.items()}
            largest = type(self.attr)(**{**self.attr.fields(), **now}).size_class()
            choice = choose_for_class(largest, in_code=True)
            if choice.implementation.is_reference:
                return None
            source = choice.implementation.source(largest, choice.variant)
            if not self.serves_all_sizes or choice.implementation.name != "gen":
                _guard_class(largest, most)
        except (AttrError, NotUsableError, BuildError, UnsupportedError):
            return None
        return source

    def begin_build(self) -> None:
        """Let another process build the kernel meanwhile, if that takes long."""
        from jitkernels.runtime.loading import build_ahead

        if build_ahead.is_on():
            external = self.external
            build_ahead.begin_all(None if external is None or external.source is None else external.source())


def _most(value: Number) -> Number:
    """A size, or its upper bound if it is loop-variant. Raises UnsupportedError if there is none."""
    most = limit(value, is_upper=True)
    if most is None:
        raise UnsupportedError("sizes without a bound")
    return most


def _guard_class(largest: Any, sizes: Mapping[str, Number]) -> None:
    """Guard that sizes are in one size class: correctness and speed of a kernel may depend on it."""
    known = largest.known_fields()
    for name, value in sizes.items():
        if not known[name].is_size:
            continue
        if value > getattr(largest, name) or (symbolic_dims.value_of(value) == 1 and value != 1):
            raise UnsupportedError("sizes of another class")


@dataclass
class KernelCall:
    """The step of a ``kernel`` node, and all of its results."""

    node: Node
    items: list[Node] = field(default_factory=list)

    @property
    def kernel(self) -> NamedKernel:
        result: NamedKernel = self.node.options["function"]
        return result

    @property
    def work(self) -> Number:
        """The work of the traced call."""
        return int(self.kernel.attr.operations()) + 1


def densify_kernel_operands(graph: Graph) -> Graph:
    """Insert copies of strided arguments of kernels, which take dense arrays only."""
    return transformed(graph, _without_gaps)


def _dense(operand: Node) -> Node:
    """A dense array of the same elements: itself, a dense argument in another shape, or a copy."""
    if operand.operation == "view" and operand.inputs[0].operation == "input" and is_dense(operand.inputs[0]):
        split = builder.map_of_split(operand.inputs[0].shape, operand.shape)
        if split is not None and access_map.key_of(split) == access_map.key_of(operand.options["map"]):
            return Node("reshape", operand.inputs, operand.dtype, operand.shape)
        return operand
    return operand if is_dense(operand) else builder.copy(operand)


def _without_gaps(node: Node) -> Node:
    if node.operation != "kernel":
        return node
    inputs = [_dense(operand) for operand in node.inputs]
    is_unchanged = all(operand is other for operand, other in zip(inputs, node.inputs, strict=True))
    return node if is_unchanged else node.with_inputs(inputs)


def call_of(node: Node, items: Sequence[Node]) -> KernelCall | None:
    """The step of a node; None if Python must call the kernel. Results without a reader are computed, too."""
    kernel: NamedKernel = node.options["function"]
    if kernel.external is None:
        return None
    result = {item.options["index"]: item for item in items}
    return KernelCall(
        node,
        [
            result.get(i) or Node("item", (node,), dtype, shape, {"index": i})
            for i, (dtype, shape) in enumerate(node.options["results"])
        ],
    )
