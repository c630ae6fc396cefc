"""logaddexp2(x, y) = log2(2**x + 2**y) for float32 and float64, as max(x, y) + log2(1 + 2**-|x - y|).

The error is in units of the larger one of the two terms, and kept small as that of `logaddexp`.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp2 import decay2_float32, decay2_float64
from jitkernels.microkernels.maths.log import ZERO_32, ZERO_64
from jitkernels.microkernels.maths.log1p import raised_parts_float32, raised_parts_float64
from jitkernels.microkernels.maths.log2 import C1_32, LOG2E_HIGH_64, halves_float64, rest_float32
from jitkernels.microkernels.maths.logaddexp import FAR_32, FAR_64
from jitkernels.microkernels.maths.strict_arithmetic import times, two_sum_error

LN2_32 = np.float32(0.6931472)
LN2_64 = np.float64(0.6931471805599453)


@inlined("contract")
def difference_float32(x: np.float32, y: np.float32) -> tuple[np.float32, np.float32]:
    """exp2(-abs(x - y)), as the sum of two."""
    more, less = max(x, y), min(x, y)
    gap = abs(x - y)
    near = less if gap < FAR_32 else more  # infinities and the largest numbers would set a flag
    error = two_sum_error(more, -near) if gap < FAR_32 else ZERO_32
    gap = ZERO_32 if x == y else gap  # inf - inf is NaN
    e, low = decay2_float32(gap)
    return e, low - e * error * LN2_32


@inlined("contract")
def logaddexp2_float32(x: np.float32, y: np.float32) -> np.float32:
    """logaddexp2(x, y) for all float32; at most 1.9 ULP (3e6 pairs measured)."""
    e, low = difference_float32(x, y)
    k, f, scale = raised_parts_float32(e)
    return max(x, y) + (k + (f * C1_32 + (rest_float32(f) + times(low * scale, C1_32))))


@inlined("contract")
def difference_float64(x: np.float64, y: np.float64) -> tuple[np.float64, np.float64]:
    """exp2(-abs(x - y)), as the sum of two."""
    more, less = max(x, y), min(x, y)
    gap = abs(x - y)
    near = less if gap < FAR_64 else more  # infinities and the largest numbers would set a flag
    error = two_sum_error(more, -near) if gap < FAR_64 else ZERO_64
    gap = ZERO_64 if x == y else gap  # inf - inf is NaN
    e, low = decay2_float64(gap)
    return e, low - e * error * LN2_64


@inlined("contract")
def logaddexp2_float64(x: np.float64, y: np.float64) -> np.float64:
    """logaddexp2(x, y) for all float64; at most 1.4 ULP (3e6 pairs measured)."""
    e, low = difference_float64(x, y)
    k, f, scale = raised_parts_float64(e)
    high, rest = halves_float64(f)
    return max(x, y) + (k + (high * LOG2E_HIGH_64 + (rest + times(low * scale, LOG2E_HIGH_64))))
