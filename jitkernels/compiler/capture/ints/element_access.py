"""Single elements of arrays in loops: gather and scatter of ``a[i, j]`` at runtime indices.

An index has a bounds check only where its interval does not prove it; out of bounds, NumPy computes and raises
IndexError.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced, result
from jitkernels.compiler.capture.functionalization import View
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.dynamic_row_view import DynamicRow, bounded
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least


def element_index(array: Traced, key: Any) -> tuple[Any, ...] | None:
    """The ints of a key for one element, some known only to the compiled code; None for other keys."""
    parts = key if type(key) is tuple else (key,)
    if not array.tracer.depth or len(parts) != array.ndim or not parts:
        return None
    if not all(type(part) in (int, SymInt) or _is_int(part) for part in parts):
        return None
    return parts


def _is_int(value: Any) -> bool:
    return type(value) is Traced and not value.ndim and value.dtype.kind in "iu" and value.dtype != "uint64"


def read(array: Traced, parts: tuple[Any, ...]) -> Traced:
    """``array[parts]``."""
    tracer = array.tracer
    base, indices = _base_and_indices(tracer, array.view, _indices(tracer, array, parts))
    node = Node("gather", (base.node, *indices), base.node.dtype, (), {"axis": 0})
    return result(tracer, node)


def check_assignment(array: Traced, value: Any) -> None:
    """Raise UnsupportedError for an assignment to an element that fails, or that code generation does not support."""
    if array.view.is_readonly:
        raise UnsupportedError("an assignment to a read-only array")
    if getattr(value, "ndim", 0):
        raise UnsupportedError("an array is assigned to one element")


def write(array: Traced, parts: tuple[Any, ...], node: Node) -> None:
    """``array[parts] = node``."""
    tracer, dtype = array.tracer, array.node.dtype
    base, indices = _base_and_indices(tracer, array.view, _indices(tracer, array, parts))
    base.write(Node("scatter", (base.node, node, *indices), dtype, base.node.shape, {"axis": 0}))


def _indices(tracer: Tracer, array: Traced, parts: tuple[Any, ...]) -> list[Node]:
    return [_checked_index(tracer, part, extent) for part, extent in zip(parts, array.extents, strict=True)]


def _checked_index(tracer: Tracer, value: Any, extent: Number) -> Node:
    """A nonnegative index with a bounds check where needed."""
    node, bounds = as_int(tracer, value), intervals.interval(tracer, value)
    if bounds is not None:
        low, high = bounds
        if is_at_least(low, 0) and intervals.guarded_at_least_zero(extent - 1 - high):
            return node
        if is_at_least(-1 - high, 0) and intervals.guarded_at_least_zero(low + extent):
            return elementwise("add", node, builder.extent(extent))
    return bounded(tracer, node, extent, counts_back=bounds is None or not is_at_least(bounds[0], 0))


def checked_indices(tracer: Tracer, value: Any, numbers: Node, extent: Number) -> Node:
    """Indices of elements in a loop or branch: gathers by them wait until a bounds check has covered all of them."""
    if not numbers.ndim:
        return _checked_index(tracer, value, extent)
    below = elementwise("less", numbers, builder.extent(-extent))
    above = elementwise("greater_equal", numbers, builder.extent(extent))
    outside = elementwise("logical_or", below, above)
    has_outside = builder.cast(builder.reduce("any", outside, range(outside.ndim)), "int64")
    zero = bounded(tracer, has_outside, 1, counts_back=False)
    return elementwise("add", numbers, zero)


def _base_and_indices(tracer: Tracer, view: View, indices: list[Node]) -> tuple[View, list[Node]]:
    """The base array of a view, and the indices there."""
    while (parent := view.parent) is not None:
        if isinstance(view, DynamicRow):
            indices = [*indices[: view.axis], *view.inside(), *indices[view.axis :]]
            view = parent
            continue
        if view.map is None:
            if type(view) is not View:
                raise UnsupportedError("an element of the parts of complex numbers")
            view, indices = parent, _unraveled(_raveled(indices, view.shape), parent.shape)
            continue
        base_indices = []
        for start, steps in view.map:
            total = builder.extent(start)
            for dimension, step in steps:
                offset = elementwise("multiply", indices[dimension], builder.extent(step))
                total = elementwise("add", total, offset)
            base_indices.append(total)
        view, indices = parent, base_indices
    return view, indices


def _raveled(indices: list[Node], shape: Sequence[Number]) -> Node:
    """The number of an element in C order."""
    number = indices[0]
    for index, extent in zip(indices[1:], shape[1:], strict=True):
        number = elementwise("add", elementwise("multiply", number, builder.extent(extent)), index)
    return number


def _unraveled(number: Node, shape: Sequence[Number]) -> list[Node]:
    """The indices of the element with this number in C order."""
    indices: list[Node] = []
    for extent in reversed(shape[1:]):
        size = builder.extent(extent)
        indices.insert(0, elementwise("remainder", number, size))
        number = elementwise("floor_divide", number, size)
    return [number, *indices]
