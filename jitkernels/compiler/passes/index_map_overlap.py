"""How the regions of an array that two index maps show lie to each other; provable for every value of the extents."""

import math
from collections.abc import Sequence

from jitkernels.graph.construct import IndexMap
from jitkernels.graph.extents import Number, key_of_shape, least_of, same, same_shape
from jitkernels.graph.passes.maps import dimensions_read


def is_same_region(one: IndexMap, its: Sequence[Number], other: IndexMap, others: Sequence[Number]) -> bool:
    """Whether two maps show the same elements in the same order."""
    return same_shape(its, others) and _key(one) == _key(other)


def _key(index_map: IndexMap) -> object:
    return tuple(
        (*key_of_shape((start,)), tuple((dimension, *key_of_shape((step,))) for dimension, step in steps))
        for start, steps in index_map
    )


def shows_each_once(index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether no element is shown twice: the view has steps in all its dimensions, no two of them in one."""
    plain = all(len(steps) <= 1 and all(not same(step, 0) for _, step in steps) for _, steps in index_map)
    wide = {i for i, extent in enumerate(shape) if not same(extent, 1)}
    return plain and wide <= dimensions_read(index_map)


def bounds(
    start: Number, steps: Sequence[tuple[int, Number]], shape: Sequence[Number]
) -> tuple[Number, Number] | None:
    """The first and the last index of one dimension that a map shows; None if the signs of steps are not known."""
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
    """Whether an extent is at least a bound, for all values of the symbols."""
    known = least_of(extent - bound)
    return known is not None and known >= 0


def are_apart(one: IndexMap, its: Sequence[Number], other: IndexMap, others: Sequence[Number]) -> bool:
    """Whether two regions have no element in common."""
    for (start, steps), (begin, further) in zip(one, other, strict=True):
        here, there = bounds(start, steps, its), bounds(begin, further, others)
        if here is None or there is None:
            continue
        if is_at_least(there[0] - here[1], 1) or is_at_least(here[0] - there[1], 1):
            return True
        strides = [step for _, step in (*steps, *further)]
        stride = math.gcd(*strides) if all(isinstance(step, int) for step in strides) else 0
        apart = begin - start
        if stride and isinstance(apart, int) and apart % stride:
            return True
    return False


def within(
    inner: IndexMap, its: Sequence[Number], outer: IndexMap, outers: Sequence[Number]
) -> IndexMap | None:
    """The map by which a region, looked at through another that contains it, shows what it shows; None if unknown.

    The containing one has one step of 1 in each dimension, or a single index.
    """
    result: list[tuple[Number, tuple[tuple[int, Number], ...]]] = [(0, ())] * len(outers)
    found: set[int] = set()
    for (start, steps), (begin, further) in zip(inner, outer, strict=True):
        limits = bounds(start, steps, its)
        if limits is None:
            return None
        if not further:
            if not (same(limits[0], begin) and same(limits[1], begin)):
                return None
            continue
        (dimension, step), *more = further
        if more or not same(step, 1) or dimension in found:
            return None
        if not (
            is_at_least(limits[0] - begin, 0) and is_at_least(begin + outers[dimension] - 1 - limits[1], 0)
        ):
            return None
        found.add(dimension)
        result[dimension] = (start - begin, tuple(steps))
    return tuple(result)
