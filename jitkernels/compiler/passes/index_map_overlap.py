"""How the regions that two index maps select from one array overlap, proven for every value of the symbolic extents."""

import math
from collections.abc import Sequence

from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.symbolic_dims import Number, key_of_shape, least_of, same, same_shape
from jitkernels.compiler.passes.index_maps import dimensions_read


def is_same_region(
    first_map: IndexMap, first_shape: Sequence[Number], second_map: IndexMap, second_shape: Sequence[Number]
) -> bool:
    """Whether two index maps select the same elements in the same order."""
    return same_shape(first_shape, second_shape) and _map_key(first_map) == _map_key(second_map)


def _map_key(index_map: IndexMap) -> object:
    return tuple(
        (*key_of_shape((start,)), tuple((dimension, *key_of_shape((step,))) for dimension, step in steps))
        for start, steps in index_map
    )


def is_injective(index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether a view selects no element twice: each dimension has a nonzero step, no two of them in one dimension."""
    has_single_steps = all(len(steps) <= 1 and all(not same(step, 0) for _, step in steps) for _, steps in index_map)
    wide = {i for i, extent in enumerate(shape) if not same(extent, 1)}
    return has_single_steps and wide <= dimensions_read(index_map)


def bounds(start: Number, steps: Sequence[tuple[int, Number]], shape: Sequence[Number]) -> tuple[Number, Number] | None:
    """The first and the last index that a map selects in one dimension; None if the sign of a step is unknown."""
    first = last = start
    for dimension, step in steps:
        reach = step * (shape[dimension] - 1)
        if is_at_least(step, 0):
            last = last + reach
        elif is_at_least(-step, 0):
            first = first + reach
        else:
            return None
    return first, last


def is_at_least(extent: Number, bound: int) -> bool:
    """Whether `extent >= bound` for all values of the symbols."""
    known = least_of(extent - bound)
    return known is not None and known >= 0


def are_disjoint(
    first_map: IndexMap, first_shape: Sequence[Number], second_map: IndexMap, second_shape: Sequence[Number]
) -> bool:
    """Whether the regions of two index maps have no element in common."""
    for (start, steps), (second_start, second_steps) in zip(first_map, second_map, strict=True):
        first_bounds, second_bounds = (
            bounds(start, steps, first_shape),
            bounds(second_start, second_steps, second_shape),
        )
        if first_bounds is None or second_bounds is None:
            continue
        if is_at_least(second_bounds[0] - first_bounds[1], 1) or is_at_least(first_bounds[0] - second_bounds[1], 1):
            return True
        strides = [step for _, step in (*steps, *second_steps)]
        stride = math.gcd(*strides) if all(isinstance(step, int) for step in strides) else 0
        distance = second_start - start
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
        limits = bounds(start, steps, inner_shape)
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
