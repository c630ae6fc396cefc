"""Keys of a stable argsort: by how much elements exceed the least one, without the zeros that all keys end with.

So integers of a small range, and floats of few bits, have short keys, whatever their dtype.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.sort.sort_keys import RANK


class Keys(NamedTuple):
    """The least rank of a row, the zeros behind all keys, the largest key, and its bits.

    descents: how many elements are less than the one before.
    """

    least: Any
    zeros: Any
    largest: Any
    bits: int
    descents: int


@inlined()
def bit_length(value: Any) -> int:
    """Return the bits of an unsigned word without leading zeros."""
    bits = 0
    while value != np.uint64(0):
        value = value >> np.uint64(1)
        bits += 1
    return bits


def key_functions(dtype: str) -> tuple[Any, Any]:
    """Return the functions ``(x, n)`` that finds the keys of a row, and ``(element, keys)`` that gives one of them."""
    rank_of = RANK[dtype]

    @inlined()
    def keys_of(x: Any, n: int) -> Keys:
        first = rank_of(x[0])
        least, most, differing, descents = first, first, first ^ first, 0
        for j in range(1, n):
            rank = rank_of(x[j])
            least, most = min(least, rank), max(most, rank)
            differing |= rank ^ first
            descents += 1 if rank < rank_of(x[j - 1]) else 0
        zeros, rest = np.uint64(0), np.int64(differing)
        while rest != 0 and rest & 1 == 0:
            rest = rest >> 1
            zeros += np.uint64(1)
        largest = (np.int64(most).view(np.uint64) - np.int64(least).view(np.uint64)) >> zeros
        return Keys(least, zeros, largest, bit_length(largest), descents)

    @inlined()
    def key_of(element: Any, keys: Keys) -> Any:
        return (np.int64(rank_of(element)).view(np.uint64) - np.int64(keys.least).view(np.uint64)) >> keys.zeros

    return keys_of, key_of
