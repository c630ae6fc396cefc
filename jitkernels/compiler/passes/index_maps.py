"""What index maps of views say: whether elements are repeated, and what a view is without that."""

from collections.abc import Sequence

from jitkernels.graph import construct
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import lies_along


def dimensions_read(index_map: IndexMap) -> set[int]:
    """The dimensions of a view along which its elements differ."""
    return {dimension for _, steps in index_map for dimension, _ in steps}


def repeated_dimensions(index_map: IndexMap, shape: Sequence[Number]) -> set[int]:
    """Those along which all its elements are the same ones."""
    read = dimensions_read(index_map)
    return {i for i, extent in enumerate(shape) if i not in read and not same(extent, 1)}


def overlaps(index_map: IndexMap) -> bool:
    """Whether a view may show an element at several places beside that: windows do."""
    return any(len(steps) > 1 or any(same(step, 0) for _, step in steps) for _, steps in index_map)


def without_repeats(index_map: IndexMap, shape: Sequence[Number]) -> tuple[Number, ...]:
    """The shape of the same view with one element where it repeats them."""
    read = dimensions_read(index_map)
    return tuple(extent if i in read else 1 for i, extent in enumerate(shape))


def only_places(node: Node) -> bool:
    """Whether a view shows all of an array, its dimensions in another order or with others of one element between."""
    index_map, inner = node.options["map"], node.inputs[0]
    used: list[int] = []
    for (_, steps), extent in zip(index_map, inner.shape, strict=True):
        if not steps:
            if not same(extent, 1):
                return False
            continue
        if len(steps) != 1 or not same(steps[0][1], 1) or not same(node.shape[steps[0][0]], extent):
            return False
        used.append(steps[0][0])
    return len(set(used)) == len(used) and not repeated_dimensions(index_map, node.shape)


def operand_map(
    operand: Sequence[Number], full: Sequence[Number], index_map: IndexMap, shape: Sequence[Number]
) -> tuple[IndexMap, tuple[Number, ...]] | None:
    """For a view of an elementwise node, of shape `full`, the view of one operand that it is computed from.

    Dimensions along which the operand is broadcast have one element. None where calls may differ in which these are.
    """
    missing = len(full) - len(operand)
    found = []
    for extent, whole, entry in zip(operand, full[missing:], index_map[missing:], strict=True):
        along = lies_along(extent, whole)
        if along is None:
            return None
        found.append(entry if along else (0, ()))
    return before_repeats(tuple(found), shape)


def before_repeats(index_map: IndexMap, shape: Sequence[Number]) -> tuple[IndexMap, tuple[Number, ...]]:
    """The view that is broadcast to a shape where a view of that shape repeats elements."""
    own = without_repeats(index_map, shape)
    count = 0
    while count < len(own) and same(own[count], 1) and not same(shape[count], 1):
        count += 1
    moved = tuple((start, tuple((i - count, step) for i, step in steps)) for start, steps in index_map)
    return moved, tuple(own[count:])


def behind_repeats(node: Node, shape: Sequence[Number]) -> Node:
    """A view that repeats the elements of a node to a shape, of which the node has each extent or 1."""
    missing = len(shape) - node.ndim
    index_map = tuple(
        (0, () if same(here, 1) and not same(there, 1) else ((missing + i, 1),))
        for i, (here, there) in enumerate(zip(node.shape, shape[missing:], strict=True))
    )
    return construct.view(node, index_map, shape)
