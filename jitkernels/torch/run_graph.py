"""Run an FX graph of ATen operators on arrays: what `jk.jit` traces."""

import operator as python_operators
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import Node

from jitkernels.compiler.capture.array_proxy import Traced, traced
from jitkernels.compiler.capture.callee_monitor import monitor_suspended
from jitkernels.compiler.capture.fixed_extents import fix_extents
from jitkernels.compiler.capture.pytree.transposed_results import owned_result, transposed_axes
from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.torch.array_values import Inferred
from jitkernels.torch.aten_table import AtenOperator, all_operators
from jitkernels.torch.torch_dtypes import numpy_dtype

IGNORED = "device", "layout", "pin_memory", "memory_format", "non_blocking"
"""Keywords that say where and how elements lie."""
SIZE_OPERATORS = frozenset({
    python_operators.add, python_operators.sub, python_operators.mul, python_operators.floordiv,
    python_operators.mod, python_operators.getitem, python_operators.neg,
})  # fmt: skip
"""Functions of Python in graphs: arithmetic of sizes, and the choice of one of several results."""
SIZES = ("sym_size.int",)
"""Operators whose results are sizes."""
ELEMENTWISE = "elementwise", "activation"
"""Modules of operators that treat all axes alike."""
OTHER_SHAPE = "a result of another shape than torch infers"
"""Why a node stays torch's whose operator here is wrong."""


def overload_name(target: Any) -> str:
    """The name of an overload as the table has it: ``add.Tensor``."""
    name = str(target)
    return name.removeprefix("aten.").removeprefix("prims.")


def operator_of(node: Node) -> AtenOperator | None:
    """The operator of a node; None where there is none."""
    return all_operators().get(getattr(node.target, "jitkernels_operator", None) or overload_name(node.target))


def inferred(value: Any) -> Any:
    """What torch infers of a result, or of each of several."""
    if isinstance(value, torch.Tensor):
        return Inferred(numpy_dtype(value.dtype), tuple(one if type(one) is int else None for one in value.shape))
    return tuple(map(inferred, value)) if isinstance(value, tuple | list) else None


class NodeCall:
    """A node with what running it needs to know: its operator, and what torch infers of its result."""

    def __init__(self, node: Node) -> None:
        self.node, self.name = node, overload_name(node.target)
        self.operator = None if node.target in SIZE_OPERATORS else operator_of(node)
        self.result = inferred(node.meta.get("val"))
        self.dtype = None
        if self.operator is not None and self.operator.promotes:
            self.dtype = _promoted(node) if self.operator.promotes == "operands" else _first(self.result).dtype

    def run(self, values: Mapping[Node, Any]) -> Any:
        """The result of the node. Raises NotImplementedError where there is no operator for it."""
        node = self.node
        args = [_argument(one, values) for one in node.args]
        if node.target in SIZE_OPERATORS:
            return node.target(*args)
        if self.name in SIZES:
            return args[0].shape[args[1]]
        if self.operator is None:
            raise NotImplementedError(f"no operator {self.name}")
        keywords = {
            name: _argument(one, values) for name, one in node.kwargs.items() if name not in IGNORED and one is not None
        }
        if self.dtype is not None:
            tensors_only = self.operator.promotes == "tensors"
            args = [_cast(one, self.dtype) if _has_dtype(one) or not tensors_only else one for one in args]
        args = [_widened(one) for one in args]
        if self.operator.takes_result:
            keywords["result"] = self.result
        if self.operator.module in ELEMENTWISE and not self.operator.takes_result:
            axes = _memory_axes(args)
            if axes is not None:
                order = np.argsort(axes)
                args = [np.transpose(one, order) if _has_dtype(one) and one.ndim else one for one in args]
                return _settled(np.transpose(self.operator.function(*args, **keywords), axes), self.result)
        return _settled(self.operator.function(*args, **keywords), self.result)


class ArrayFunction:
    """A graph as a function of a tuple of arrays: its placeholders, without those that are sizes of others.

    `at`: the node at which tracing failed. `transposed`: which arrays are given transposed, and by which axes.
    """

    def __init__(self, nodes: Sequence[Node], inputs: Sequence[Node], outputs: Sequence[Any]) -> None:
        self.calls, self.inputs, self.outputs = tuple(map(NodeCall, nodes)), tuple(inputs), tuple(outputs)
        self.constants: dict[Node, Any] = {}
        self.sizes: dict[Node, int] = {}
        self.transposed: list[tuple[int, tuple[int, ...]]] = []
        self._orders: dict[Node, tuple[int, ...]] = {}
        self.at: Node | None = None
        sources = _size_sources(inputs)
        self._arrays = [node for node in inputs if isinstance(node.meta["val"], torch.Tensor)]
        self._fixed = {node: inferred(node.meta["val"]).shape for node in self._arrays}
        self._extents = {node: sources.get(str(node.meta["val"])) for node in inputs if node not in self._arrays}

    def set_orders(self, orders: Mapping[Node, tuple[int, ...] | None]) -> None:
        """Take arrays transposed by these axes, as they lie in memory: in C order, the compiler knows where all is.

        `orders`: for each array that is no constant, in their order.
        """
        self.transposed = [(place, order) for place, order in enumerate(orders.values()) if order is not None]
        self._orders = {node: order for node, order in orders.items() if order is not None}

    def __call__(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, each an array of its own."""
        tracer = current()
        if tracer is not None:
            tracer.is_quiet = tracer.accepts_arrays = True
        values: dict[Node, Any] = {**self.constants}
        values |= zip((node for node in self._arrays if node not in self.constants), arrays, strict=True)
        for node in self._arrays:
            order = self._orders.get(node)
            if type(values[node]) is Traced:
                fixed = self._fixed[node]
                fix_extents(values[node], fixed if order is None else tuple(fixed[axis] for axis in order))
            if order is not None:
                values[node] = np.transpose(values[node], np.argsort(order))
        for node, source in self._extents.items():
            values[node] = self.sizes[node] if source is None else values[source[0]].shape[source[1]]
        with monitor_suspended(), np.errstate(all="ignore"):
            for call in self.calls:
                self.at = call.node if tracer is not None else self.at  # a plain run follows a trace that failed
                values[call.node] = call.run(values)
            self.at = None if tracer is not None else self.at
            bases: set[Any] = set()
            return tuple(_result(values[node], bases) for node in self.outputs)


def needed_sizes(inputs: Sequence[Node]) -> list[Node]:
    """The placeholders that are sizes of no array among them: their values are constants of the code."""
    sources = _size_sources(inputs)
    return [
        node for node in inputs
        if not isinstance(node.meta["val"], torch.Tensor) and str(node.meta["val"]) not in sources
    ]  # fmt: skip


def _size_sources(inputs: Sequence[Node]) -> dict[str, tuple[Node, int]]:
    """For each symbol that is an extent of an array, the array and the axis."""
    sources: dict[str, tuple[Node, int]] = {}
    for node in inputs:
        value = node.meta["val"]
        if isinstance(value, torch.Tensor):
            for axis, extent in enumerate(value.shape):
                if isinstance(extent, torch.SymInt):
                    sources.setdefault(str(extent), (node, axis))
    return sources


def _argument(value: Any, values: Mapping[Node, Any]) -> Any:
    if isinstance(value, Node):
        return values[value]
    if isinstance(value, list | tuple):
        return [_argument(one, values) for one in value]
    return numpy_dtype(value) if isinstance(value, torch.dtype) else value


def _first(result: Any) -> Inferred:
    return result[0] if isinstance(result, tuple) else result  # type: ignore[no-any-return]


def _promoted(node: Node) -> Any:
    """The dtype in which torch compares operands."""
    first, second = (one.meta["val"] if isinstance(one, Node) else one for one in node.args[:2])
    return numpy_dtype(torch.result_type(first, second))


def _cast(value: Any, dtype: Any) -> Any:
    """An operand in the dtype of an operation; numbers of it are exact, where arrays of one element are not."""
    if isinstance(value, list | tuple):
        return [_cast(one, dtype) for one in value]
    if _has_dtype(value):
        if value.dtype == dtype or (value.dtype.kind == "c" and dtype.kind != "c"):  # functions take the real part
            return value
        return value != value.dtype.type(0) if dtype.kind == "b" else value.astype(dtype)
    if type(value) in (bool, int, float, complex) and not isinstance(value, bool):
        return dtype.type(value) if dtype.kind in "fc" else value
    return value


def _has_dtype(value: Any) -> bool:
    """Whether a value is an array; to look for the attribute specializes symbolic ints."""
    return type(value) is not SymInt and hasattr(value, "dtype")


def _widened(value: Any) -> Any:
    """Half precision in float32, in which torch computes; results are rounded to it."""
    if isinstance(value, list | tuple):
        return [_widened(one) for one in value]
    is_half = _has_dtype(value) and value.dtype == np.float16
    return value.astype(np.float32) if is_half else value


def _memory_axes(operands: Sequence[Any]) -> tuple[int, ...] | None:
    """The axes by which all operands of three or more dimensions are transposed from memory; None if they differ.

    An elementwise operator that computes in that order gives a result that is transposed as well, which kernels of
    images read as it lies. Numbers have no order, nor have values of channels.
    """
    arrays = [one for one in operands if _has_dtype(one) and one.ndim]
    if any(type(one) is not Traced or one.ndim < 3 or one.ndim != arrays[0].ndim for one in arrays):
        return None
    ordered = [one.view for one in arrays if sum(not same(extent, 1) for extent in one.view.shape) > 1]
    axes = {transposed_axes(view) for view in ordered}
    (found,) = axes if len(axes) == 1 else (None,)
    return None if found is None or found == tuple(range(len(found))) else found


def _settled(value: Any, result: Any) -> Any:
    """A result, or several, in the dtypes that torch infers."""
    if isinstance(value, tuple | list):
        parts = result if isinstance(result, tuple) else (None,) * len(value)
        return [_settled(one, part) for one, part in zip(value, parts, strict=False)]
    if value is None or result is None or type(value) is SymInt:
        return value
    _require_shape(value, result.shape)
    if type(value) is not Traced:
        return np.asarray(value, result.dtype).view(Frozen)
    return value if value.dtype == result.dtype else value.astype(result.dtype)


def _require_shape(value: Any, shape: Sequence[int | None]) -> None:
    """Raise NotImplementedError for a result of another shape than torch infers: an operator does less than ATen's."""
    own = np.shape(value) if type(value) is not Traced else value.shape
    pairs = zip(own, shape, strict=False)
    if len(own) != len(shape) or any(type(one) is int and other not in (None, one) for one, other in pairs):
        raise NotImplementedError(f"{OTHER_SHAPE}: {tuple(own)}, not {tuple(shape)}")


def _result(value: Any, bases: set[Any]) -> Any:
    """A value as a result of compiled code, which constants are no results of."""
    tracer = current()
    if tracer is None or value is None or type(value) in (SymInt, int):
        return value
    if type(value) is not Traced:
        return traced(tracer, np.asarray(value)).copy()
    return np.array(value) if value.is_weak else owned_result(value, bases)
