"""log10 for float32 and float64: with the parts of x that `log` has.

log10(x) = k * log10(2) + log10(1 + f), as in `log2`; log10(2) is in two parts as well, of which the high one times any
k is exact (fdlibm, e_log10.c). float32: even and odd powers of f are two sums, which a processor works on at once.

The polynomial comes from a Remez exchange as that of `log`.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined, seldom
from jitkernels.microkernels.maths.log import (
    UP_32,
    UP_64,
    UP_STEPS_64,
    limit_float32,
    limit_float64,
    parts_float64,
    scaled_parts_float32,
    split_float64,
    subnormal_float32,
    subnormal_float64,
    unusual_float32,
    unusual_float64,
)
from jitkernels.microkernels.maths.strict_arithmetic import times

C1_32 = np.float32(0.4342945)  # relative error of log10(1 + f): 2**-24.7
C2_32 = np.float32(-0.21714722)
C3_32 = np.float32(0.14476636)
C4_32 = np.float32(-0.10857988)
C5_32 = np.float32(0.08672187)
C6_32 = np.float32(-0.07200415)
C7_32 = np.float32(0.06459552)
C8_32 = np.float32(-0.06183018)
C9_32 = np.float32(0.038040668)
LOG2_HIGH_32 = np.float32(0.301025390625 / 2**23)  # log10(2), of the scaled k; 9 bits
LOG2_LOW_32 = np.float32(4.6050390665e-06 / 2**23)
UP_STEPS_32 = np.float32(23 * 2**23)

LOG10E_HIGH_64 = np.float64(4.34294481878168880939e-01)
LOG10E_LOW_64 = np.float64(2.50829467116452752298e-11)
LOG2_HIGH_64 = np.float64(3.01029995663611771306e-01)
LOG2_LOW_64 = np.float64(3.69423907715893078616e-13)


@inlined("contract")
def joined_float32(k: np.float32, f: np.float32) -> np.float32:
    """k * log10(2) + log10(1 + f), of the scaled k."""
    square = f * f
    even = ((C8_32 * square + C6_32) * square + C4_32) * square + C2_32
    odd = ((C9_32 * square + C7_32) * square + C5_32) * square + C3_32
    rest = (odd * f + even) * square + times(k, LOG2_LOW_32)
    return k * LOG2_HIGH_32 + (f * C1_32 + rest)


@inlined("contract")
def joined_float64(k: np.float64, f: np.float64) -> np.float64:
    """k * log10(2) + log10(1 + f)."""
    high, low = split_float64(f)
    small = times(k, LOG2_LOW_64) + (times(low + high, LOG10E_LOW_64) + low * LOG10E_HIGH_64)
    return k * LOG2_HIGH_64 + (high * LOG10E_HIGH_64 + small)


@seldom("contract")
def subnormal_log10_float32(x: np.float32) -> np.float32:
    """log10(x) of a positive subnormal number."""
    k, f = scaled_parts_float32(x * UP_32)
    return joined_float32(k - UP_STEPS_32, f)


@inlined("contract")
def log10_float32(x: np.float32) -> np.float32:
    """log10(x) for every float32; at most 1.44 ULP (all measured)."""
    k, f = scaled_parts_float32(x)
    result = joined_float32(k, f)
    if unusual_float32(x):
        result = limit_float32(x)
        if subnormal_float32(x):
            result = subnormal_log10_float32(x)
    return result


@seldom("contract")
def subnormal_log10_float64(x: np.float64) -> np.float64:
    """log10(x) of a positive subnormal number."""
    k, f = parts_float64(x * UP_64)
    return joined_float64(k - UP_STEPS_64, f)


@inlined("contract")
def log10_float64(x: np.float64) -> np.float64:
    """log10(x) for every float64; at most 0.84 ULP (2.8e7 inputs measured)."""
    k, f = parts_float64(x)
    result = joined_float64(k, f)
    if unusual_float64(x):
        result = limit_float64(x)
        if subnormal_float64(x):
            result = subnormal_log10_float64(x)
    return result
