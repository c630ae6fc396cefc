"""Selection of a pivot, the median of a sample, and the division of a part around it."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.sort.pivot_partition import has_permutations, partition
from jitkernels.microkernels.sort.radix_sort import WORDS
from jitkernels.microkernels.sort.sort_keys import KEY
from jitkernels.microkernels.sort.sort_tasks import FIRST_EQUAL, Move, Row, Subrange, push
from jitkernels.microkernels.sort.sorting_network import network

FEW, MANY = 16, 64
"""Elements of the sample of a pivot."""
LONG = 2048
"""Elements of a part of which the sample is of many."""
EQUALITY_BLOCK = 64
"""Elements of a block in a search for an unequal one."""


class _Keys(NamedTuple):
    """The functions of the keys of a part, which are those of elements, or stored."""

    key_at: Any
    pivot_of: Any
    are_equal: Any


def _keys(dtype: str, bits: int, lanes: int, converts: bool) -> _Keys:
    integer, converted = WORDS[dtype].integer, KEY[dtype]
    sort_few, sort_many = network(bits, FEW, lanes), network(bits, MANY, lanes)

    @inlined()
    def key_at(source: Any, j: int) -> Any:
        return converted(source[j]) if converts else source[j]

    @inlined()
    def sampled(source: Any, n: int, count: int, sample: Any) -> None:
        """Take a key from each of `count` strides, at places that no pattern of the keys follows."""
        stride, state = n // count, np.uint64(n)
        for i in range(count):
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            sample[i] = key_at(source, i * stride + (int(state >> np.uint64(33)) * stride >> 31))

    @inlined()
    def pivot_of(source: Any, n: int, sample: Any) -> int:
        """Sort a sample; return where its median is."""
        if n < LONG:
            sampled(source, n, FEW, sample)
            sort_few(sample)
            return FEW // 2
        sampled(source, n, MANY, sample)
        sort_many(sample)
        return MANY // 2

    @inlined()
    def are_equal(source: Any, n: int, pivot: Any) -> Any:
        """Whether all keys are the pivot; stops at the first block in which one is not."""
        start = 0
        while start < n:
            stop, differences = min(start + EQUALITY_BLOCK, n), integer(0)
            for j in range(start, stop):
                differences |= key_at(source, j) ^ pivot
            if differences != integer(0):
                return False
            start = stop
        return True

    return _Keys(key_at, pivot_of, are_equal)


def _splits(dtype: str, bits: int, lanes: int, converts: bool, key_at: Any) -> tuple[Any, Any]:
    """Return the functions that split a part before the keys of the pivot, and one of keys behind them."""
    target = cpu_target.target()
    permutes = has_permutations(target, bits * lanes // 8)
    below = partition(target, dtype, bits, lanes, relation="slt", converts=converts)
    not_above = partition(target, dtype, bits, lanes, relation="sle", converts=False)

    @inlined()
    def split_below(source: Any, to: Any, n: int, pivot: Any) -> Any:
        """Write the keys below the pivot in front of the others; return their number."""
        low, done = 0, 0
        if permutes:
            low, done = below(source, to, n, pivot), n - n % lanes
        for j in range(done, n):
            key = key_at(source, j)
            to[low] = key
            to[low + n - 1 - j] = key
            low += 1 if key < pivot else 0
        return low

    @inlined()
    def split_equal(source: Any, to: Any, n: int, pivot: Any) -> Any:
        """Write the keys not above the pivot in front of the others; return their number."""
        low, done = 0, 0
        if permutes:
            low, done = not_above(source, to, n, pivot), n - n % lanes
        for j in range(done, n):
            key = source[j]
            to[low] = key
            to[low + n - 1 - j] = key
            low += 1 if key <= pivot else 0
        return low

    return split_below, split_equal


def division(dtype: str, bits: int, lanes: int, converts: bool) -> Any:
    """Return the function that replaces a task by those of its parts."""
    keys = _keys(dtype, bits, lanes, converts)
    split_below, split_equal = _splits(dtype, bits, lanes, converts, keys.key_at)

    @noinline()
    def divide(row: Row, move: Move, part: Subrange, count: int) -> Any:
        """Partition a task; return how many tasks there are, the leftmost of which is the last."""
        begin, end, left = part.begin, part.end, part.left - 1
        n, sample = end - begin, row.spare
        half = keys.pivot_of(offset(move.source, begin), n, sample)
        pivot = sample[half]
        if sample[0] == sample[2 * half - 1] and keys.are_equal(offset(move.source, begin), n, pivot):
            move.to[begin] = pivot
            return push(row, count, move.to_place + FIRST_EQUAL, part)
        low = begin + split_below(offset(move.source, begin), offset(move.to, begin), n, pivot)
        place = move.to_place
        if (sample[half - 1] == pivot) | (sample[half + 1] == pivot):
            place = move.other_place
            high = low + split_equal(offset(move.to, low), offset(move.other, low), end - low, pivot)
            count = push(row, count, place, Subrange(high, end, left))
            count = push(row, count, place + FIRST_EQUAL, Subrange(low, high, left))
        else:
            count = push(row, count, place, Subrange(low, end, left))
        return push(row, count, move.to_place, Subrange(begin, low, left))

    return divide
