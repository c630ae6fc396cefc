"""Stable argsort of a row: words of leading bits of keys and of indices are sorted by networks and quicksort.

As no two words are equal, their order is the stable one, wherever the bits of a key that fit beside an index decide.
Elements of equal bits are compared, and inserted; where that takes too long, the row is sorted by radix. Where keys
have few values, these are counted: one pass over the row then sorts it.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.sort.argsort_keys import Keys, bit_length, key_functions
from jitkernels.microkernels.sort.base_cases import part_sort
from jitkernels.microkernels.sort.quicksort import quicksort
from jitkernels.microkernels.sort.radix_argsort import WIDE_DIGITS_FROM, radix_argsort, starts_of
from jitkernels.microkernels.sort.sort_keys import RANK
from jitkernels.microkernels.sort.sort_tasks import MAX_TASKS, TASK, Row

WORD_DTYPE = "int64"
WORD_BITS = 63
"""Bits of a word that is not negative."""
MAX_TABLE_VALUES = 1 << 16
"""Most values of keys that are counted: the counts stay in the caches."""
VALUES_PER_ELEMENT = 4
"""Values of keys for each element, up to which a table is faster than sorting words."""
MOVES_PER_ELEMENT = 4
"""Moves for each element, on average, that insertions among equal leading bits may take."""
SHORT_DIGIT_COUNTS, DIGIT_COUNTS = 1 << 11, 1 << 14
"""The most counts of all narrow, and of all wide digits of a word."""
TASK_WORDS = TASK * MAX_TASKS
"""Words of the tasks of quicksort."""


@inlined()
def counts_of(n: int) -> int:
    """Return how many counts a row needs: for a table, or for all digits of a word."""
    values = min(VALUES_PER_ELEMENT * n, MAX_TABLE_VALUES)
    return max(values, SHORT_DIGIT_COUNTS if n < WIDE_DIGITS_FROM else DIGIT_COUNTS)


class ArgsortBuffers(NamedTuple):
    """Two rooms for the words of a row and `SLACK` more, as many words, tasks of quicksort, and counts."""

    first: Any
    second: Any
    spare: Any
    tasks: Any
    counts: Any


def counting(dtype: str) -> Any:
    """Return the function that sorts a row whose keys have few values."""
    _, key_of = key_functions(dtype)

    @inlined()
    def by_table(x: Any, y: Any, n: int, keys: Keys, counts: Any) -> None:
        values = int(keys.largest) + 1
        for i in range(values):
            counts[i] = 0
        for j in range(n):
            counts[int(key_of(x[j], keys))] += 1
        starts_of(counts, values)
        for j in range(n):
            value = int(key_of(x[j], keys))
            y[counts[value]] = j
            counts[value] += 1

    return by_table


def comparing(dtype: str) -> Any:
    """Return the function that orders elements that words leave open."""
    rank_of = RANK[dtype]

    @inlined()
    def ties_are_resolved(x: Any, y: Any, n: int, index_bits: int) -> Any:
        """Order words of equal leading bits by their elements; return whether that was done in few moves."""
        mask, moves = (1 << index_bits) - 1, 0
        for j in range(1, n):
            word, i = y[j], j
            if word >> index_bits == y[j - 1] >> index_bits:
                rank = rank_of(x[word & mask])
                while i > 0 and y[max(i - 1, 0)] >> index_bits == word >> index_bits:
                    if not rank < rank_of(x[y[i - 1] & mask]):
                        break
                    y[i] = y[i - 1]
                    i -= 1
                y[i] = word
                moves += j - i
                if moves > MOVES_PER_ELEMENT * n:
                    return False
        return True

    return ties_are_resolved


def packed_argsort(dtype: str, lanes: int) -> Any:
    """Return the function ``(x, y, n, buffers)`` that writes the indices that sort a row; `lanes`: of words."""
    by_table, ties_are_resolved, by_radix = counting(dtype), comparing(dtype), radix_argsort(dtype)
    keys_of, key_of = key_functions(dtype)
    most, sort_words = quicksort(WORD_DTYPE, lanes)
    _, sort_few = part_sort(WORD_DTYPE, 64, lanes)

    @inlined()
    def by_words(x: Any, y: Any, n: int, keys: Keys, index_bits: int, buffers: ArgsortBuffers) -> Any:
        """Write words in order; return whether they are those of the elements in order."""
        words, dropped = buffers.second, max(keys.bits + index_bits - WORD_BITS, 0)
        for j in range(n):
            words[j] = ((key_of(x[j], keys) >> np.uint64(dropped)).view(np.int64) << index_bits) | j
        if n <= most:
            sort_few(words, n, buffers.first)
            for j in range(n):
                y[j] = buffers.first[j]
        else:
            first, tasks = buffers.first, buffers.tasks
            sort_words(Row(words, y, n, first, words, buffers.spare, tasks, buffers.counts, tasks, 0))
        return dropped == 0 or ties_are_resolved(x, y, n, index_bits)

    @inlined()
    def sorted_indices(x: Any, y: Any, n: int, buffers: ArgsortBuffers) -> None:
        if n < 2:
            for j in range(n):
                y[j] = 0
            return
        keys, index_bits = keys_of(x, n), bit_length(np.int64(n - 1).view(np.uint64))
        if keys.descents == 0 or keys.descents == n - 1:
            for j in range(n):
                y[j] = j if keys.descents == 0 else n - 1 - j
        elif keys.largest < np.uint64(min(VALUES_PER_ELEMENT * n, MAX_TABLE_VALUES)):
            by_table(x, y, n, keys, buffers.counts)
        elif by_words(x, y, n, keys, index_bits, buffers):
            mask = (1 << index_bits) - 1
            for j in range(n):
                y[j] = y[j] & mask
        else:
            by_radix(x, y, n, keys, index_bits, buffers.first, buffers.counts)

    return sorted_indices
