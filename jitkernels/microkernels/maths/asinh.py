"""asinh for float32 and float64: log1p(x + x**2 / (1 + sqrt(1 + x**2))) of |x|, without cancellation.

The rounding error of that sum enters the logarithm as well. Where x**2 would overflow the result is log(x) + ln 2, on a
slow path behind one test of all lanes.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined, seldom
from jitkernels.microkernels.maths.exp import ONE_32, ONE_64
from jitkernels.microkernels.maths.log import (
    INFINITY_32,
    INFINITY_64,
    ZERO_32,
    ZERO_64,
    joined_float32,
    joined_float64,
    parts_float32,
    parts_float64,
)
from jitkernels.microkernels.maths.log1p import plus_log1p_float32, plus_log1p_float64
from jitkernels.microkernels.maths.tanh import SIGN_32, SIGN_64

LARGE_32 = np.float32(2.0**30)  # from here on the result is log(2 * size)
LARGE_64 = np.float64(2.0**60)


@seldom("contract")
def log_of_twice_float32(size: np.float32) -> np.float32:
    """log(2 * size), the value of asinh and acosh for large arguments; for 1 and more, infinity and NaN."""
    k, f = parts_float32(size)
    return joined_float32(k + ONE_32, f) if size < INFINITY_32 else size


@inlined("contract")
def asinh_float32(x: np.float32) -> np.float32:
    """asinh(x) for every float32; at most 1.70 ULP (1.1e9 inputs measured)."""
    size = abs(x)
    square = size * size
    more = square / (ONE_32 + np.sqrt(square + ONE_32))
    above = size + more
    result = plus_log1p_float32(ZERO_32, above, (size - above) + more)
    if not size < LARGE_32:
        result = log_of_twice_float32(size)
    sign = x.view(np.int32) & SIGN_32
    return (result.view(np.int32) | sign).view(np.float32)


@seldom("contract")
def log_of_twice_float64(size: np.float64) -> np.float64:
    """log(2 * size), the value of asinh and acosh for large arguments; for 1 and more, infinity and NaN."""
    k, f = parts_float64(size)
    return joined_float64(k + ONE_64, f) if size < INFINITY_64 else size


@inlined("contract")
def asinh_float64(x: np.float64) -> np.float64:
    """asinh(x) for every float64; at most 1.67 ULP (2.8e7 inputs measured)."""
    size = abs(x)
    square = size * size
    more = square / (ONE_64 + np.sqrt(square + ONE_64))
    above = size + more
    result = plus_log1p_float64(ZERO_64, above, (size - above) + more)
    if not size < LARGE_64:
        result = log_of_twice_float64(size)
    sign = x.view(np.int64) & SIGN_64
    return (result.view(np.int64) | sign).view(np.float64)
