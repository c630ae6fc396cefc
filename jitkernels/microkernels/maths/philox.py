"""Philox4x32-10 in the typed kernel language: 32-bit words, each in the lower half of a 64-bit lane.

A processor multiplies 32-bit words to 64 bits in just such halves, so that a product is one instruction, its upper word
a shift, and vectors need no shuffles.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined

MASK = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
FACTOR_A, FACTOR_C = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_LOW, WEYL_HIGH = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
ROUNDS = 10
ZERO = np.uint64(0)


@inlined()
def philox(a: Any, b: Any, c: Any, d: Any, low: Any, high: Any) -> Any:
    """The four words of a counter and a key of two."""
    for _ in range(ROUNDS):
        first = (a & MASK) * FACTOR_A
        second = (c & MASK) * FACTOR_C
        a, b, c, d = (
            (second >> HALF) ^ b ^ (low & MASK),
            second & MASK,
            (first >> HALF) ^ d ^ (high & MASK),
            first & MASK,
        )
        low += WEYL_LOW
        high += WEYL_HIGH
    return a, b, c, d


@inlined()
def block_of(number: int, seed: int) -> Any:
    """The words of a block of a stream."""
    counter, key = np.uint64(number), np.uint64(seed)
    return philox(counter & MASK, counter >> HALF, ZERO, ZERO, key & MASK, key >> HALF)
