"""Quicksort of a long row: partitions by whole vectors between two buffers, and sorting networks of short parts.

Parts are taken from left to right, each from the buffer that the last partition wrote, so that what a network writes
behind a part is overwritten by the next one. Keys equal to a pivot that occurs more than once in its sample are put
aside, as they are sorted. Where pivots turn out badly again and again, a radix sort finishes the part.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.sort.float_sort_keys import FLOAT_OF, KEY
from jitkernels.microkernels.sort.partition import has_permutations, partition
from jitkernels.microkernels.sort.radix_sort import DIGIT, WORDS, radix_passes
from jitkernels.microkernels.sort.sorting_network import network, padded_network

SLACK = 128
"""Elements behind each buffer that a network may read."""
FEW, MANY = 16, 64
"""Elements of the sample of a pivot."""
LONG = 2048
"""Elements of a part of which the sample is of many."""
COMPARED = 64
"""Elements of a block in a search for an unequal one."""
PARTITIONS_PER_BIT = 2
"""Partitions on the way to a part, for each bit of the number of elements, before the rest is sorted by radix."""
TASK = 4
"""Words of a part that is to be sorted: its begin, its end, the place of its keys, and the partitions left to it."""
FIRST, SECOND, FIRST_EQUAL, SECOND_EQUAL = range(4)
"""Places of keys: the buffers; also of equal keys alone."""
MAX_TASKS = 3 * PARTITIONS_PER_BIT * 64


class Row(NamedTuple):
    """A row of n elements x, its results y, buffers of keys, room for a network's elements, tasks, and counts."""

    x: Any
    y: Any
    n: int
    first: Any
    second: Any
    spare: Any
    tasks: Any
    counts: Any


def words_of_scratch(digits: int) -> int:
    """Words of the tasks and the counts of a row."""
    return TASK * MAX_TASKS + digits * DIGIT


def serves(vector_bytes: int) -> bool:
    return has_permutations(cpu_target.target(), vector_bytes)


def _leaves(dtype: str, bits: int, lanes: int) -> tuple[int, Any]:
    """The most elements of a network, and the function that sorts the keys of a part, and writes them as elements."""
    most = 16 * lanes
    sort_16, sort_32, sort_64, sort_128 = (
        padded_network(dtype, bits, min(count, most), lanes) for count in (16, 32, 64, 128)
    )
    integer, number = WORDS[dtype].integer, np.dtype(dtype).type

    @inlined()
    def sort_part(keys: Any, n: int, results: Any) -> None:
        if n <= 16:
            sort_16(keys, integer(n), results)
        elif n <= 32:
            sort_32(keys, integer(n), results)
        elif n <= 64:
            sort_64(keys, integer(n), results)
        else:
            sort_128(keys, integer(n), results)

    @inlined()
    def leaf(row: Row, keys: Any, begin: int, end: int) -> None:
        """Sort a part. At the end of the row a network would write behind it."""
        n = end - begin
        if begin + most <= row.n:
            sort_part(offset(keys, begin), n, offset(row.y, begin))
        else:
            sort_part(offset(keys, begin), n, row.spare)
            for j in range(n):
                row.y[begin + j] = row.spare[j].view(number)

    return most, leaf


class Move(NamedTuple):
    """Where the keys of a part are, where its partition goes, and that of what is not below the pivot, and places."""

    source: Any
    to: Any
    other: Any
    to_place: int
    other_place: int


class Part(NamedTuple):
    """The elements of a task, and how many partitions are left to it."""

    begin: int
    end: int
    left: int


@inlined()
def push(row: Row, count: int, place: int, part: Part) -> int:
    """Add a task; return how many there are."""
    task = offset(row.tasks, TASK * count)
    task[0], task[1], task[2], task[3] = part.begin, part.end, place, part.left
    return count + 1


def _division(dtype: str, bits: int, lanes: int, converts: bool) -> Any:
    """Return the function that replaces a task by those of its parts."""
    target, integer = cpu_target.target(), WORDS[dtype].integer
    below = partition(target, dtype, bits, lanes, relation="slt", converts=converts)
    not_above = partition(target, dtype, bits, lanes, relation="sle", converts=False)
    sort_few, sort_many = network(bits, FEW, lanes), network(bits, MANY, lanes)
    converted = KEY[dtype]

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
    def split_below(source: Any, to: Any, n: int, pivot: Any) -> int:
        """Write the keys below the pivot in front of the others; return their number."""
        low = below(source, to, n, pivot)
        for j in range(n - n % lanes, n):
            key = key_at(source, j)
            to[low] = key
            to[low + n - 1 - j] = key
            low += 1 if key < pivot else 0
        return low

    @inlined()
    def split_equal(source: Any, to: Any, n: int, pivot: Any) -> int:
        """Write the keys not above the pivot in front of the others; return their number."""
        low = not_above(source, to, n, pivot)
        for j in range(n - n % lanes, n):
            key = source[j]
            to[low] = key
            to[low + n - 1 - j] = key
            low += 1 if key <= pivot else 0
        return low

    @inlined()
    def all_equal(source: Any, n: int, pivot: Any) -> Any:
        """Whether all keys are the pivot; stops at the first block in which one is not."""
        start = 0
        while start < n:
            stop, differences = min(start + COMPARED, n), integer(0)
            for j in range(start, stop):
                differences |= key_at(source, j) ^ pivot
            if differences != integer(0):
                return False
            start = stop
        return True

    @noinline()
    def divide(row: Row, move: Move, part: Part, count: int) -> int:
        """Partition a task; return how many tasks there are, the leftmost of which is the last."""
        begin, end, left = part.begin, part.end, part.left - 1
        n, half, sample = end - begin, FEW // 2, row.spare
        if n < LONG:
            sampled(offset(move.source, begin), n, FEW, sample)
            sort_few(sample)
        else:
            sampled(offset(move.source, begin), n, MANY, sample)
            sort_many(sample)
            half = MANY // 2
        pivot = sample[half]
        if sample[0] == sample[2 * half - 1] and all_equal(offset(move.source, begin), n, pivot):
            move.to[begin] = pivot
            return push(row, count, move.to_place + FIRST_EQUAL, part)
        low = begin + split_below(offset(move.source, begin), offset(move.to, begin), n, pivot)
        place = move.to_place
        if (sample[half - 1] == pivot) | (sample[half + 1] == pivot):
            place = move.other_place
            high = low + split_equal(offset(move.to, low), offset(move.other, low), end - low, pivot)
            count = push(row, count, place, Part(high, end, left))
            count = push(row, count, place + FIRST_EQUAL, Part(low, high, left))
        else:
            count = push(row, count, place, Part(low, end, left))
        return push(row, count, move.to_place, Part(begin, low, left))

    return divide


def quicksort(dtype: str, bits: int, lanes: int) -> Any:
    """Return the function that sorts a row."""
    most, leaf = _leaves(dtype, bits, lanes)
    divide_elements, divide_keys = (_division(dtype, bits, lanes, converts) for converts in (True, False))
    word, float_of = WORDS[dtype], FLOAT_OF[dtype]

    @inlined()
    def key_of_entry(x: Any, key: Any, packs: bool) -> Any:  # noqa: ARG001  # as of entries with indices
        return key.view(word.unsigned) ^ word.top

    order, count_digits = radix_passes(word, key_of_entry)

    @noinline()
    def by_radix(row: Row, keys: Any, buffer: Any, part: Part) -> None:
        n, keys, buffer = part.end - part.begin, offset(keys, part.begin), offset(buffer, part.begin)
        for i in range(word.digits * DIGIT):
            row.counts[i] = 0
        for j in range(n):
            count_digits(key_of_entry(row.x, keys[j], False), row.counts)
        in_buffer = order(row.x, n, row.counts, keys, buffer, False)
        for j in range(n):
            row.y[part.begin + j] = float_of(buffer[j] if in_buffer else keys[j])

    @inlined()
    def fill(row: Row, keys: Any, part: Part) -> None:
        value = float_of(keys[part.begin])
        for j in range(part.begin, part.end):
            row.y[j] = value

    @inlined()
    def sort_keys(row: Row, move: Move, part: Part, count: int) -> int:
        """Sort the keys of a task, or replace it by others; return how many there are."""
        if part.end - part.begin <= most:
            leaf(row, move.source, part.begin, part.end)
            return count
        if part.left == 0:
            by_radix(row, move.source, move.to, part)
            return count
        return divide_keys(row, move, part, count)

    @noinline()
    def sort_row(row: Row) -> None:
        size, partitions = row.n, 0
        while size > 0:
            size = size // 2
            partitions += PARTITIONS_PER_BIT
        from_first = Move(row.first, row.second, row.first, SECOND, FIRST)
        from_second = Move(row.second, row.first, row.second, FIRST, SECOND)
        elements = Move(row.x, row.first, row.second, FIRST, SECOND)
        count = divide_elements(row, elements, Part(0, row.n, partitions), 0)
        while count > 0:
            count -= 1
            task = offset(row.tasks, TASK * count)
            part, place = Part(task[0], task[1], task[3]), task[2]
            if place == FIRST:
                count = sort_keys(row, from_first, part, count)
            elif place == SECOND:
                count = sort_keys(row, from_second, part, count)
            elif place == FIRST_EQUAL:
                fill(row, row.first, part)
            else:
                fill(row, row.second, part)

    return most, sort_row
