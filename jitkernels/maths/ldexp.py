"""a * 2**n for float32 and float64, rounded once.

The power is the product of up to three powers that are numbers. Where the result is subnormal, all but the last leave
it normal, so that nothing is rounded before the last product.
"""

from typing import Any

import numpy as np

from jitkernels.native.source import inlined

UP_32, UP_BY_32 = np.float32(2.0**127), np.int64(127)
DOWN_32, DOWN_BY_32 = np.float32(2.0**-102), np.int64(102)  # 2**-126 with room for all digits
UP_64, UP_BY_64 = np.float64(2.0**1023), np.int64(1023)
DOWN_64, DOWN_BY_64 = np.float64(2.0**-969), np.int64(969)
LEAST_32, LEAST_64 = np.int64(-126), np.int64(-1022)


@inlined()
def ldexp_float32(a: np.float32, n: Any) -> np.float32:
    """a * 2**n for every float32 and every n."""
    left = min(max(np.int64(n), np.int64(-1000)), np.int64(1000))
    for _step in range(2):
        a = a * UP_32 if left > UP_BY_32 else a * DOWN_32 if left < LEAST_32 else a
        left = left - UP_BY_32 if left > UP_BY_32 else left + DOWN_BY_32 if left < LEAST_32 else left
    left = min(max(left, LEAST_32), UP_BY_32)
    return a * (np.int32(left + UP_BY_32) << 23).view(np.float32)


@inlined()
def ldexp_float64(a: np.float64, n: Any) -> np.float64:
    """a * 2**n for every float64 and every n."""
    left = min(max(np.int64(n), np.int64(-10000)), np.int64(10000))
    for _step in range(2):
        a = a * UP_64 if left > UP_BY_64 else a * DOWN_64 if left < LEAST_64 else a
        left = left - UP_BY_64 if left > UP_BY_64 else left + DOWN_BY_64 if left < LEAST_64 else left
    left = min(max(left, LEAST_64), UP_BY_64)
    return a * ((left + UP_BY_64) << 52).view(np.float64)
