"""Index maps of views: broadcast dimensions, overlapping windows, views without their broadcast, and disjoint regions.

Disjointness and containment are proven for every value of the symbolic extents.
"""

import math
from collections.abc import Sequence

from jitkernels.compiler.ir import access_map, builder
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least, same, same_shape
from jitkernels.compiler.passes.matchers import spans_extent


def dimensions_read(index_map: IndexMap) -> set[int]:
    """The dimensions of a view along which its elements differ."""
    return {dimension for _, steps in index_map for dimension, _ in steps}


def broadcast_dimensions(index_map: IndexMap, shape: Sequence[Number]) -> set[int]:
    """The dimensions of a view along which all elements are the same ones."""
    read = dimensions_read(index_map)
    return {i for i, extent in enumerate(shape) if i not in read and not same(extent, 1)}


def overlaps(index_map: IndexMap) -> bool:
    """Whether a view may show an element more than once beside broadcasting it, as sliding windows do."""
    return any(len(steps) > 1 or any(same(step, 0) for _, step in steps) for _, steps in index_map)


def shape_without_broadcast(index_map: IndexMap, shape: Sequence[Number]) -> tuple[Number, ...]:
    """The shape of a view with extent 1 for each broadcast dimension."""
    read = dimensions_read(index_map)
    return tuple(extent if i in read else 1 for i, extent in enumerate(shape))


def is_permutation(node: Node) -> bool:
    """Whether a view shows all of an array with its dimensions permuted, or with new dimensions of extent 1."""
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
    return len(set(used)) == len(used) and not broadcast_dimensions(index_map, node.shape)


def operand_map(
    operand: Sequence[Number], full: Sequence[Number], index_map: IndexMap, shape: Sequence[Number]
) -> tuple[IndexMap, tuple[Number, ...]] | None:
    """For a view of an elementwise node of shape `full`: the view of one operand that computes it, as map and shape.

    Dimensions along which the operand is broadcast get extent 1. None where other calls may broadcast differently.
    """
    missing = len(full) - len(operand)
    entries = []
    for extent, full_extent, entry in zip(operand, full[missing:], index_map[missing:], strict=True):
        along = spans_extent(extent, full_extent)
        if along is None:
            return None
        entries.append(entry if along else (0, ()))
    return without_broadcast(tuple(entries), shape)


def without_broadcast(index_map: IndexMap, shape: Sequence[Number]) -> tuple[IndexMap, tuple[Number, ...]]:
    """The view without its broadcast dimensions, as map and shape; `broadcast_again` restores them."""
    own = shape_without_broadcast(index_map, shape)
    count = 0
    while count < len(own) and same(own[count], 1) and not same(shape[count], 1):
        count += 1
    shifted = tuple((start, tuple((i - count, step) for i, step in steps)) for start, steps in index_map)
    return shifted, tuple(own[count:])


def broadcast_again(node: Node, shape: Sequence[Number]) -> Node:
    """A view that broadcasts a node to a shape, of which the node has each extent or 1."""
    missing = len(shape) - node.ndim
    index_map = tuple(
        (0, () if same(extent, 1) and not same(target_extent, 1) else ((missing + i, 1),))
        for i, (extent, target_extent) in enumerate(zip(node.shape, shape[missing:], strict=True))
    )
    return builder.view(node, index_map, shape)


def is_same_region(
    first_map: IndexMap, first_shape: Sequence[Number], second_map: IndexMap, second_shape: Sequence[Number]
) -> bool:
    """Whether two index maps select the same elements in the same order."""
    return same_shape(first_shape, second_shape) and access_map.key_of(first_map) == access_map.key_of(second_map)


def is_injective(index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether a view selects no element twice: each dimension has a nonzero step, no two of them in one dimension."""
    has_single_steps = all(len(steps) <= 1 and all(not same(step, 0) for _, step in steps) for _, steps in index_map)
    wide = {i for i, extent in enumerate(shape) if not same(extent, 1)}
    return has_single_steps and wide <= dimensions_read(index_map)


def are_disjoint(
    first_map: IndexMap, first_shape: Sequence[Number], second_map: IndexMap, second_shape: Sequence[Number]
) -> bool:
    """Whether the regions of two index maps have no element in common."""
    for first, second in zip(first_map, second_map, strict=True):
        ranges = access_map.index_range(first, first_shape), access_map.index_range(second, second_shape)
        if access_map.are_apart(*ranges):
            return True
        strides = [step for _, step in (*first[1], *second[1])]
        stride = math.gcd(*strides) if None not in ranges and all(isinstance(step, int) for step in strides) else 0
        distance = second[0] - first[0]
        if stride and isinstance(distance, int) and distance % stride:
            return True
    return False


def within(
    inner: IndexMap, inner_shape: Sequence[Number], outer: IndexMap, outer_shape: Sequence[Number]
) -> IndexMap | None:
    """The map of the `inner` region relative to the `outer` region that contains it; None if it cannot be proven to.

    The outer region has one step of 1, or a single index, in each dimension.
    """
    result: list[tuple[Number, tuple[tuple[int, Number], ...]]] = [(0, ())] * len(outer_shape)
    matched: set[int] = set()
    for (start, steps), (outer_start, outer_steps) in zip(inner, outer, strict=True):
        limits = access_map.index_range((start, steps), inner_shape)
        if limits is None:
            return None
        if not outer_steps:
            if not (same(limits[0], outer_start) and same(limits[1], outer_start)):
                return None
            continue
        (dimension, step), *more = outer_steps
        if more or not same(step, 1) or dimension in matched:
            return None
        if not (
            is_at_least(limits[0] - outer_start, 0)
            and is_at_least(outer_start + outer_shape[dimension] - 1 - limits[1], 0)
        ):
            return None
        matched.add(dimension)
        result[dimension] = (start - outer_start, tuple(steps))
    return tuple(result)
