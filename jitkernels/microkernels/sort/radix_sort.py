"""Radix sort of entries by their keys between two buffers: it takes the same time for any data.

Digits that all keys have in common are skipped.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.sort.sort_keys import SORT_KEYS

DIGIT = 256
"""Values of a digit."""


class KeyWord(NamedTuple):
    """The types of keys of a dtype. top: flips signs, so that keys are in the order of unsigned words."""

    integer: Any
    unsigned: Any
    bits: int
    top: Any

    @property
    def digits(self) -> int:
        return self.bits // 8


_OF_BITS = {
    32: KeyWord(np.int32, np.uint32, 32, np.uint32(1 << 31)),
    64: KeyWord(np.int64, np.uint64, 64, np.uint64(1 << 63)),
}
WORDS = {dtype: _OF_BITS[8 * np.dtype(dtype).itemsize] for dtype in SORT_KEYS}


def radix_passes(word: KeyWord, key_of_entry: Any) -> Any:
    """Return the function that orders entries by their keys, digit by digit, with the counts of each digit.

    ``key_of_entry(x, entry, packs)`` is the key of an entry. Returns whether the result is in the buffer.
    """
    unsigned, mask = word.unsigned, word.unsigned(DIGIT - 1)
    eight = unsigned(8)

    @inlined()
    def bucket_of(x: Any, entry: Any, packs: bool, shift: Any) -> int:
        return int((key_of_entry(x, entry, packs) >> shift) & mask)

    @inlined()
    def scatter(x: Any, m: int, own: Any, entries: Any, to: Any, packs: bool, shift: Any) -> None:
        for j in range(m):
            entry = entries[j]
            bucket = bucket_of(x, entry, packs, shift)
            to[own[bucket]] = entry
            own[bucket] += 1

    @inlined()
    def order(x: Any, m: int, counts: Any, entries: Any, buffer: Any, packs: bool) -> int:
        in_buffer, shift = 0, unsigned(0)
        for digit in range(word.digits):
            own = offset(counts, DIGIT * digit)
            if own[bucket_of(x, entries[0] if in_buffer == 0 else buffer[0], packs, shift)] != m:
                total = 0
                for i in range(DIGIT):
                    bucket_size = own[i]
                    own[i] = total
                    total += bucket_size
                if in_buffer == 0:
                    scatter(x, m, own, entries, buffer, packs, shift)
                else:
                    scatter(x, m, own, buffer, entries, packs, shift)
                in_buffer = 1 - in_buffer
            shift += eight
        return in_buffer

    @inlined()
    def count(key: Any, counts: Any) -> None:
        """Count the digits of a key."""
        rest = key
        for digit in range(word.digits):
            counts[DIGIT * digit + int(rest & mask)] += 1
            rest = rest >> eight

    return order, count
