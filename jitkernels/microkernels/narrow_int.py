"""Small functions of loop nests over narrow numbers: words of memory, sums of bytes, bfloat16 as float32 and back."""

from typing import Any

import numpy as np

from jitkernels.loops.grouped_tile import LANES
from jitkernels.native.source import IRFunction, inlined

WIDTH = 2 * LANES
HALF, ONE, QUIET = np.uint32(0x7FFF), np.uint32(1), np.uint32(0x400000)
LESS = np.int32(-128)

word_at = IRFunction(
    "word_at",
    "int32",
    ("void*", "int64"),
    """define i32 @word_at(ptr %a, i64 %at) alwaysinline nounwind {
  %address = getelementptr i8, ptr %a, i64 %at
  %word = load i32, ptr %address, align 1
  ret i32 %word
}
""",
)
"""Four bytes from some place on."""


@inlined()
def words_add_up(panel: Any, start: Any, words: int) -> None:
    """-128 times the sum of the bytes with signs in each column of a panel."""
    for j in range(WIDTH):
        start[j] = 0
    for q in range(words):
        for j in range(WIDTH):
            word = panel[q * WIDTH + j]
            start[j] += ((word << 24) >> 24) + ((word << 16) >> 24) + ((word << 8) >> 24) + (word >> 24)
    for j in range(WIDTH):
        start[j] = start[j] * LESS


@inlined()
def widened(bits: Any) -> Any:
    """The float32 that bits of a bfloat16 stand for."""
    return (np.uint32(bits) << 16).view(np.float32)


@inlined()
def narrowed(value: Any) -> Any:
    """The bits of the bfloat16 nearest to a float32, of two the one that ends in 0."""
    bits = value.view(np.uint32)
    rounded = (bits + HALF + ((bits >> 16) & ONE)) >> 16
    return np.uint16((bits | QUIET) >> 16 if value != value else rounded)
