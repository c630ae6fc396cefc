"""Quicksort of a long row: partitions by whole vectors between two buffers, and sorting networks of short parts.

Parts are taken from left to right, each from the buffer that the last partition wrote, so that what a network writes
behind a part is overwritten by the next one. Keys equal to a pivot that occurs more than once in its sample are put
aside, as they are sorted. Where pivots turn out badly again and again, a radix sort finishes the part.

Order statistics come from the same steps: parts without any of the wanted indices are dropped.
"""

from typing import Any

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.sort.base_cases import writers
from jitkernels.microkernels.sort.pivot_partition import has_permutations
from jitkernels.microkernels.sort.pivot_selection import division
from jitkernels.microkernels.sort.radix_sort import DIGIT, WORDS, radix_passes
from jitkernels.microkernels.sort.sort_keys import ELEMENT_OF
from jitkernels.microkernels.sort.sort_tasks import (
    FIRST,
    FIRST_EQUAL,
    PARTITIONS_PER_BIT,
    SECOND,
    TASK,
    Move,
    Row,
    Subrange,
)


def serves(vector_bytes: int) -> bool:
    return has_permutations(cpu_target.target(), vector_bytes)


def _radix(dtype: str) -> Any:
    """Return the function that sorts a part by radix, and writes its results."""
    word, element_of = WORDS[dtype], ELEMENT_OF[dtype]

    @inlined()
    def key_of_entry(x: Any, key: Any, packs: bool) -> Any:  # as of entries with indices
        return key.view(word.unsigned) ^ word.top

    order, count_digits = radix_passes(word, key_of_entry)

    @inlined()
    def write(row: Row, keys: Any, part: Subrange) -> None:
        if row.wanted_count > 0:
            for i in range(row.wanted_count):
                if part.begin <= row.wanted[i] < part.end:
                    row.y[i] = element_of(keys[row.wanted[i] - part.begin])
        else:
            for j in range(part.end - part.begin):
                row.y[part.begin + j] = element_of(keys[j])

    @noinline()
    def by_radix(row: Row, keys: Any, buffer: Any, part: Subrange) -> None:
        n, keys, buffer = part.end - part.begin, offset(keys, part.begin), offset(buffer, part.begin)
        for i in range(word.digits * DIGIT):
            row.counts[i] = 0
        for j in range(n):
            count_digits(key_of_entry(row.x, keys[j], False), row.counts)
        if order(row.x, n, row.counts, keys, buffer, False) == 0:
            write(row, keys, part)
        else:
            write(row, buffer, part)

    return by_radix


def quicksort(dtype: str, lanes: int) -> Any:
    """Return the most elements of a row that networks sort, and the function that sorts a longer one, or selects."""
    bits = WORDS[dtype].bits
    most, leaf, fill = writers(dtype, bits, lanes)
    divide_elements, divide_keys = (division(dtype, bits, lanes, converts) for converts in (True, False))
    by_radix = _radix(dtype)

    @inlined()
    def sort_keys(row: Row, move: Move, part: Subrange, count: int) -> Any:
        """Sort the keys of a task, or replace it by others; return how many there are."""
        if part.end - part.begin <= most:
            leaf(row, move.source, part)
            return count
        if part.left <= 0:
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
        count = divide_elements(row, elements, Subrange(0, row.n, partitions), 0)
        while count > 0:
            count -= 1
            task = offset(row.tasks, TASK * count)
            part, place = Subrange(task[0], task[1], task[3]), task[2]
            if place == FIRST:
                count = sort_keys(row, from_first, part, count)
            elif place == SECOND:
                count = sort_keys(row, from_second, part, count)
            elif place == FIRST_EQUAL:
                fill(row, row.first[part.begin], part)
            else:
                fill(row, row.second[part.begin], part)

    return most, sort_row
