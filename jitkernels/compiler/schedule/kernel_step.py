"""Kernels of the registry as steps of a program: called at their addresses, with the extents of the arrays at hand.

A node ``kernel`` has the arrays that its row takes, without gaps, and then numbers of type double; each of its results
is an ``item`` of it.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jitkernels.errors import AttrError, BuildError, NotUsableError
from jitkernels.graph import construct, extents
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Graph, Node, transformed
from jitkernels.graph.limits import limit
from jitkernels.graph.products import is_dense
from jitkernels.graph.unknown import UnknownError
from jitkernels.kept import kept_property
from jitkernels.native.source import External


class NamedKernel:
    """What such a node computes: a row's kernel, for sizes that are the `values` of its symbols.

    `attr` is that of the traced call, `numbers` are the fields which are inputs of the node, behind the arrays.
    """

    def __init__(self, attr: Any, values: Mapping[str, Number], numbers: Sequence[str]) -> None:
        self.attr, self.values, self.numbers = attr, dict(values), tuple(numbers)
        self.__name__ = attr.name

    def run(self, sizes: Mapping[str, int], given: Sequence[Any]) -> list[Any]:
        """The results, for some sizes, in the kernel's own shapes. Raises what the kernel does."""
        from jitkernels.kernel_funcs import KernelFuncs

        numbers = given[len(given) - len(self.numbers) :]
        told = {name: float(number) for name, number in zip(self.numbers, numbers, strict=True)}
        attr = type(self.attr)(**{**self.attr.fields(), **sizes, **told})
        signature = attr.signature()
        arrays = [
            np.require(array, one.numpy, ["C", "A"]).reshape(one.shape)
            for array, one in zip(given, signature.inputs, strict=False)
        ]
        made = [np.empty(one.shape, one.numpy) for one in signature.outputs]
        KernelFuncs.cache().of_class(attr).run_as(attr, [*arrays, *made])
        return made

    @kept_property
    def external(self) -> External | None:
        """The kernel that serves all sizes of the class; None where there is none, or NumPy is pinned."""
        from jitkernels.choosing import choose_for_class
        from jitkernels.native import load

        try:
            most = {name: _most(value) for name, value in self.values.items()}
            now = {name: extents.value_of(value) for name, value in most.items()}
            largest = type(self.attr)(**{**self.attr.fields(), **now}).tuning_class()
            choice = choose_for_class(largest, in_code=True)
            if choice.implementation.is_reference:
                return None
            source = choice.implementation.source(largest, choice.variant)
            _guard_class(largest, most)
        except (AttrError, NotUsableError, BuildError, UnknownError):
            return None
        found: External = load.entry_of(source, self.attr.signature().c_arguments)
        return found


def _most(value: Number) -> Number:
    """A size, or its bound where it differs from round to round. Raises UnknownError where there is none."""
    most = limit(value, is_upper=True)
    if most is None:
        raise UnknownError("sizes without a bound")
    return most


def _guard_class(largest: Any, sizes: Mapping[str, Number]) -> None:
    """Guard that sizes are those of a class: which kernels are right, and which is quick, may hang on that."""
    known = largest.known_fields()
    for name, value in sizes.items():
        if not known[name].is_size:
            continue
        if value > getattr(largest, name) or (extents.value_of(value) == 1 and value != 1):
            raise UnknownError("sizes of another class")


@dataclass
class KernelCall:
    """The step of such a node, and all of its results."""

    node: Node
    items: list[Node] = field(default_factory=list)

    @property
    def kernel(self) -> NamedKernel:
        found: NamedKernel = self.node.options["function"]
        return found

    @property
    def work(self) -> Number:
        """As of the traced call."""
        return int(self.kernel.attr.operations()) + 1

    def text(self, function: Function, arrays: Mapping[int, Array], name: str, external: External) -> str:
        """A function that calls the kernel; it returns 0 if that did not fail."""
        block, kernel = function.block, self.kernel
        signature = kernel.attr.signature()
        given = list(self.node.inputs)
        numbers = dict(zip(kernel.numbers, given[len(given) - len(kernel.numbers) :], strict=True))
        nodes = *given[: len(given) - len(kernel.numbers)], *self.items
        passed = [f"ptr {_pointer(function, arrays[id(one)])}" for one in nodes]
        integers = [kernel.values.get(field_name, value) for field_name, value in signature.integers]
        passed += [f"i64 {function.extent(value)}" for value in integers]
        for field_name, value in signature.floats:
            if field_name in numbers:
                passed.append(f"ptr {_pointer(function, arrays[id(numbers[field_name])])}")
                continue
            place = function.variable("double")
            block.lines.append(f"  store double {_double(value)}, ptr {place}")
            passed.append(f"ptr {place}")
        function.library.declare(external.symbol, "i64", [one.partition(" ")[0] for one in passed])
        status = function.new(block, f"call i64 @{external.symbol}({', '.join(passed)})")
        head = f"define internal i64 @{name}(ptr %frame, i64 %begin, i64 %end) noinline nounwind"
        return "\n".join([f"{head} {{", *function.memory, *block.lines, f"  ret i64 {status}", "}"])


def lowered(graph: Graph) -> Graph:
    """The graph with copies of arguments that have gaps, for kernels, which take none such."""
    return transformed(graph, _without_gaps)


def _without_gaps(node: Node) -> Node:
    if node.operation != "kernel":
        return node
    inputs = [one if is_dense(one) else construct.copy(one) for one in node.inputs]
    kept = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
    return node if kept else node.with_inputs(inputs)


def call_of(node: Node, items: Sequence[Node]) -> KernelCall | None:
    """The step of a node; None where Python has to call the kernel. What nobody reads of its results is made, too."""
    kernel: NamedKernel = node.options["function"]
    if kernel.external is None:
        return None
    found = {one.options["index"]: one for one in items}
    return KernelCall(
        node,
        [
            found.get(i) or Node("item", (node,), dtype, shape, {"index": i})
            for i, (dtype, shape) in enumerate(node.options["results"])
        ],
    )


def _pointer(function: Function, array: Array) -> str:
    at = function.new(function.block, f"getelementptr i64, ptr %frame, i64 {array.word}")
    return function.new(function.block, f"load ptr, ptr {at}")


def _double(value: float) -> str:
    return f"0x{int.from_bytes(struct.pack('>d', value)):016X}"
