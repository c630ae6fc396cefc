"""Helpers of range kernels over narrow types: words of memory, sums of bytes, bfloat16 to float32 and back."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import IRFunction, inlined
from jitkernels.microkernels.gemm.vnni_microkernel import LANES

WIDTH = 2 * LANES
HALF, ONE, QUIET = np.uint32(0x7FFF), np.uint32(1), np.uint32(0x400000)
LESS = np.int32(-128)

load_word = IRFunction(
    "load_word",
    "int32",
    ("void*", "int64"),
    """define i32 @load_word(ptr %a, i64 %at) alwaysinline nounwind {
  %address = getelementptr i8, ptr %a, i64 %at
  %word = load i32, ptr %address, align 1
  ret i32 %word
}
""",
)
"""Load four bytes from an address."""


@inlined()
def column_byte_sums(panel: Any, start: Any, words: int) -> None:
    """Return -128 times the sum of the signed bytes in each column of a panel."""
    for j in range(WIDTH):
        start[j] = 0
    for q in range(words):
        for j in range(WIDTH):
            word = panel[q * WIDTH + j]
            start[j] += ((word << 24) >> 24) + ((word << 16) >> 24) + ((word << 8) >> 24) + (word >> 24)
    for j in range(WIDTH):
        start[j] = start[j] * LESS


@inlined()
def widen_bfloat16(bits: Any) -> Any:
    """Convert the bits of a bfloat16 to float32."""
    return (np.uint32(bits) << 16).view(np.float32)


@inlined()
def round_to_bfloat16(value: Any) -> Any:
    """Round a float32 to the bits of the nearest bfloat16, ties to even."""
    bits = value.view(np.uint32)
    rounded = (bits + HALF + ((bits >> 16) & ONE)) >> 16
    return np.uint16((bits | QUIET) >> 16 if value != value else rounded)
