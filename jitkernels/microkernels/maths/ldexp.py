"""a * 2**n for float32 and float64, rounded once.

Without an instruction for it, the power is the product of up to three normal powers. Where the result is subnormal, all
but the last product stay normal, so that only the last one rounds.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, instruction

UP_32, UP_BY_32 = np.float32(2.0**127), np.int32(127)
DOWN_32, DOWN_BY_32 = np.float32(2.0**-102), np.int32(102)  # 2**-126 with room for all digits
UP_64, UP_BY_64 = np.float64(2.0**1023), np.int64(1023)
DOWN_64, DOWN_BY_64 = np.float64(2.0**-969), np.int64(969)
LEAST_32, LEAST_64 = np.int32(-126), np.int64(-1022)


@inlined()
def nearer_float32(a: Any, n: Any) -> Any:
    """An equivalent a and n, where 2**n is out of range."""
    scaled = a * UP_32 if n > UP_BY_32 else a * DOWN_32 if n < LEAST_32 else a
    return scaled, n - UP_BY_32 if n > UP_BY_32 else n + DOWN_BY_32 if n < LEAST_32 else n


@inlined()
def nearer_float64(a: Any, n: Any) -> Any:
    """An equivalent a and n, where 2**n is out of range."""
    scaled = a * UP_64 if n > UP_BY_64 else a * DOWN_64 if n < LEAST_64 else a
    return scaled, n - UP_BY_64 if n > UP_BY_64 else n + DOWN_BY_64 if n < LEAST_64 else n


@instruction("ldexp")
@inlined()
def scaled_float32(a: np.float32, n: np.int32) -> np.float32:
    """a * 2**n for every float32 and every n with abs(n) <= 1000."""
    if (n > UP_BY_32) | (n < LEAST_32):
        a, n = nearer_float32(a, n)
        a, n = nearer_float32(a, n)
        n = min(max(n, LEAST_32), UP_BY_32)
    return a * (n + UP_BY_32 << 23).view(np.float32)


@inlined()
def ldexp_float32(a: Any, n: Any) -> Any:
    """a * 2**n for every float32 and every n."""
    return scaled_float32(a, np.int32(min(max(n, -1000), 1000)))


@instruction("ldexp")
@inlined()
def scaled_float64(a: np.float64, n: np.int64) -> np.float64:
    """a * 2**n for every float64 and every n with abs(n) <= 10000."""
    if (n > UP_BY_64) | (n < LEAST_64):
        a, n = nearer_float64(a, n)
        a, n = nearer_float64(a, n)
        n = min(max(n, LEAST_64), UP_BY_64)
    return a * (n + UP_BY_64 << 52).view(np.float64)


@inlined()
def ldexp_float64(a: Any, n: Any) -> Any:
    """a * 2**n for every float64 and every n."""
    return scaled_float64(a, np.int64(min(max(n, -10000), 10000)))
