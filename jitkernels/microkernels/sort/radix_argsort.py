"""Stable argsort by radix: the indices move with the keys, as the lower bits of words of 64 bits.

A word has as many bits of a key as the indices leave. Where keys have more, words are made again of the next bits, in
the order so far. Digits that all words have in common are skipped.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.microkernels.sort.argsort_keys import Keys, key_functions

NARROW_DIGIT_BITS, WIDE_DIGIT_BITS = 8, 11
"""Bits of a digit of short rows, for which tables of counts take longer than passes, and of long ones."""
WIDE_DIGITS_FROM = 1024
"""Elements of the shortest row of wide digits."""


class Words(NamedTuple):
    """Words of a row, room for as many, counts, and the bits of their indices."""

    words: Any
    others: Any
    counts: Any
    index_bits: int


class Digits(NamedTuple):
    """How many digits words have behind their indices, of how many bits, and the bits of keys that these hold."""

    number: int
    bits: int
    taken: int


@inlined()
def starts_of(counts: Any, values: int) -> None:
    """Replace counts by how many elements are of smaller values."""
    total = 0
    for i in range(values):
        count = counts[i]
        counts[i] = total
        total += count


@inlined()
def digits_of(bits: int, n: int, index_bits: int) -> Digits:
    """Return the digits of so many bits of keys: of all of them, or of as many as fit into words beside the indices."""
    most, room = NARROW_DIGIT_BITS if n < WIDE_DIGITS_FROM else WIDE_DIGIT_BITS, 63 - index_bits
    if bits > room:
        return Digits(room // most, most, room // most * most)
    number = (bits + most - 1) // most
    return Digits(number, (bits + number - 1) // number, bits)


@inlined()
def scatter(words: Any, to: Any, n: int, starts: Any, shift: int, mask: int) -> None:
    for j in range(n):
        word = words[j]
        bucket = (word >> shift) & mask
        to[starts[bucket]] = word
        starts[bucket] += 1


@noinline()
def in_order(room: Words, n: int, digits: Digits) -> int:
    """Sort words whose digits are counted; return whether the result is in the other room."""
    in_others, shift, mask = 0, room.index_bits, (1 << digits.bits) - 1
    for digit in range(digits.number):
        starts = offset(room.counts, digit << digits.bits)
        first = room.words[0] if in_others == 0 else room.others[0]
        if starts[(first >> shift) & mask] != n:
            starts_of(starts, 1 << digits.bits)
            if in_others == 0:
                scatter(room.words, room.others, n, starts, shift, mask)
            else:
                scatter(room.others, room.words, n, starts, shift, mask)
            in_others = 1 - in_others
        shift += digits.bits
    return in_others


@inlined()
def count_digits(word: int, room: Words, digits: Digits) -> None:
    shift, mask = room.index_bits, (1 << digits.bits) - 1
    for digit in range(digits.number):
        room.counts[(digit << digits.bits) + ((word >> shift) & mask)] += 1
        shift += digits.bits


def radix_argsort(dtype: str) -> Any:
    """Return the function ``(x, y, n, keys, words, counts)`` that writes the indices of a row in order."""
    _, key_of = key_functions(dtype)

    @inlined()
    def fill(x: Any, n: int, keys: Keys, room: Words, digits: Digits, done: int) -> None:
        """Make words of the bits of keys behind those that are done, of which the other words have the order."""
        for i in range(digits.number << digits.bits):
            room.counts[i] = 0
        mask, kept = (1 << room.index_bits) - 1, (1 << digits.taken) - 1
        for j in range(n):
            index = room.others[j] & mask if done > 0 else j
            word = (((key_of(x[index], keys).view(np.int64) >> done) & kept) << room.index_bits) | index
            room.words[j] = word
            count_digits(word, room, digits)

    @noinline()
    def by_radix(x: Any, y: Any, n: int, keys: Keys, index_bits: int, words: Any, counts: Any) -> None:
        done, in_y = 0, 1
        while done < keys.bits:
            digits = digits_of(keys.bits - done, n, index_bits)
            if in_y == 1:
                room = Words(words, y, counts, index_bits)
                fill(x, n, keys, room, digits, done)
                in_y = in_order(room, n, digits)
            else:
                room = Words(y, words, counts, index_bits)
                fill(x, n, keys, room, digits, done)
                in_y = 1 - in_order(room, n, digits)
            done += digits.taken
        mask = (1 << index_bits) - 1
        for j in range(n):
            y[j] = (y[j] if in_y == 1 else words[j]) & mask

    return by_radix
