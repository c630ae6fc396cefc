"""Single elements of arrays in loops: ``a[i, j]`` read and written where ints of the running code say.

An index is tested only where its bounds do not tell that it is inside; then NumPy computes, and raises its IndexError.
"""

from typing import Any

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.ints import as_int
from jitkernels.frontends.flow.rows import Row
from jitkernels.frontends.storage import View
from jitkernels.frontends.traced import Traced, result
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node


def key_of(given: Traced, key: Any) -> tuple[Any, ...] | None:
    """The ints of a key for one element, of which the running code alone knows some; None for all others."""
    parts = key if type(key) is tuple else (key,)
    if not given.tracer.depth or len(parts) != given.ndim or not parts:
        return None
    if not all(type(one) in (int, Whole) or _is_int(one) for one in parts):
        return None
    return parts


def _is_int(value: Any) -> bool:
    return type(value) is Traced and not value.ndim and value.dtype.kind in "iu" and value.dtype != "uint64"


def read(given: Traced, parts: tuple[Any, ...]) -> Traced:
    """``given[parts]``."""
    tracer = given.tracer
    base, places = _placed(tracer, given.view, _indices(tracer, given, parts))
    node = Node("gather", (base.node, *places), base.node.dtype, (), {"axis": 0})
    return result(tracer, node)


def refuse(given: Traced, value: Any) -> None:
    """Raise UnknownError for what cannot be assigned to an element, or not by the code."""
    if given.view.is_readonly:
        raise UnknownError("an assignment to what is read-only")
    if getattr(value, "ndim", 0):
        raise UnknownError("an array is assigned to one element")


def write(given: Traced, parts: tuple[Any, ...], node: Node) -> None:
    """``given[parts] = node``."""
    tracer, dtype = given.tracer, given.node.dtype
    base, places = _placed(tracer, given.view, _indices(tracer, given, parts))
    base.write(Node("scatter", (base.node, node, *places), dtype, base.node.shape, {"axis": 0}))


def _indices(tracer: Tracer, given: Traced, parts: tuple[Any, ...]) -> list[Node]:
    return [_inside(tracer, one, extent) for one, extent in zip(parts, given.extents, strict=True)]


def _inside(tracer: Tracer, value: Any, extent: Number) -> Node:
    """An index from 0 on, in bounds."""
    node, found = as_int(tracer, value), ranges.interval(tracer, value)
    if found is not None:
        low, high = found
        if ranges.is_at_least(low, 0) and ranges.guarded_at_least_zero(extent - 1 - high):
            return node
        if ranges.is_at_least(-1 - high, 0) and ranges.guarded_at_least_zero(low + extent):
            return elementwise("add", node, construct.extent(extent))
    counts_back = found is None or not ranges.is_at_least(found[0], 0)
    made = Node("bounded", (node,), "int64", (), {"extent": extent, "counts_back": counts_back})
    tracer.checks.append(elementwise("less", made, 0))  # which it never is: it is looked at in any case
    return made


def inside(tracer: Tracer, value: Any, numbers: Node, extent: Number) -> Node:
    """Numbers of elements in a loop or branch: what is picked by them waits until each is found to be in bounds."""
    if not numbers.ndim:
        return _inside(tracer, value, extent)
    below = elementwise("less", numbers, construct.extent(-extent))
    above = elementwise("greater_equal", numbers, construct.extent(extent))
    beside = elementwise("logical_or", below, above)
    found = construct.cast(construct.reduce("any", beside, range(beside.ndim)), "int64")
    none = Node("bounded", (found,), "int64", (), {"extent": 1, "counts_back": False})
    tracer.checks.append(elementwise("less", none, 0))  # as of an element
    return elementwise("add", numbers, none)


def _placed(tracer: Tracer, view: View, places: list[Node]) -> tuple[View, list[Node]]:
    """The array that a view is of, and the places there."""
    while (above := view.parent) is not None:
        if isinstance(view, Row):
            places = [*places[: view.axis], *view.numbers, *places[view.axis :]]
            view = above
            continue
        if view.map is None:
            raise UnknownError("an element of a reshaped array")
        found = []
        for start, steps in view.map:
            total = construct.extent(start)
            for dimension, step in steps:
                moved = elementwise("multiply", places[dimension], construct.extent(step))
                total = elementwise("add", total, moved)
            found.append(total)
        view, places = above, found
    return view, places
