"""log2 for float32 and float64: exact for powers of two, with the parts of x that `log` has.

log2(x) = k + log2(1 + f). float32: f * P(f), one polynomial that needs no division. float64: log(1 + f) as `log` has
it, f - (f**2 / 2 - s * (f**2 / 2 + ...)), is split before it is multiplied by log2(e): the high parts of both have few
bits, so that their product is exact (fdlibm, e_log2.c).

The polynomial comes from a Remez exchange as that of `log`.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined, seldom
from jitkernels.microkernels.maths.log import (
    UP_32,
    UP_64,
    UP_STEPS_32,
    UP_STEPS_64,
    limit_float32,
    limit_float64,
    nine_terms_float32,
    parts_float32,
    parts_float64,
    split_float64,
    subnormal_float32,
    subnormal_float64,
    unusual_float32,
    unusual_float64,
)
from jitkernels.microkernels.maths.strict_arithmetic import times

C1_32 = np.float32(1.442695)  # relative error of log2(1 + f): 2**-26.2
C2_32 = np.float32(-0.7213475)
C3_32 = np.float32(0.48090377)
C4_32 = np.float32(-0.3606826)
C5_32 = np.float32(0.2883037)
C6_32 = np.float32(-0.23978904)
C7_32 = np.float32(0.20888475)
C8_32 = np.float32(-0.19332626)
C9_32 = np.float32(0.1633331)
C10_32 = np.float32(-0.079655565)

LOG2E_HIGH_64 = np.float64(1.44269504072144627571e00)
LOG2E_LOW_64 = np.float64(1.67517131648865118353e-10)


@inlined("contract")
def rest_float32(f: np.float32) -> np.float32:
    """log2(1 + f) - f * C1."""
    return nine_terms_float32(f, C2_32, C3_32, C4_32, C5_32, C6_32, C7_32, C8_32, C9_32, C10_32)


@inlined("contract")
def joined_float32(k: np.float32, f: np.float32) -> np.float32:
    """k + log2(1 + f)."""
    return k + (f * C1_32 + rest_float32(f))


@inlined("contract")
def halves_float64(f: np.float64) -> tuple[np.float64, np.float64]:
    """The high part of log(1 + f), and log2(1 + f) minus that times the high part of log2(e)."""
    high, low = split_float64(f)
    return high, times(low + high, LOG2E_LOW_64) + low * LOG2E_HIGH_64


@inlined("contract")
def joined_float64(k: np.float64, f: np.float64) -> np.float64:
    """k + log2(1 + f)."""
    high, rest = halves_float64(f)
    return k + (high * LOG2E_HIGH_64 + rest)


@seldom("contract")
def subnormal_log2_float32(x: np.float32) -> np.float32:
    """log2(x) of a positive subnormal number."""
    k, f = parts_float32(x * UP_32)
    return joined_float32(k - UP_STEPS_32, f)


@inlined("contract")
def log2_float32(x: np.float32) -> np.float32:
    """log2(x) for every float32; at most 1.26 ULP (1.1e9 inputs measured)."""
    k, f = parts_float32(x)
    result = joined_float32(k, f)
    if unusual_float32(x):
        result = limit_float32(x)
        if subnormal_float32(x):
            result = subnormal_log2_float32(x)
    return result


@seldom("contract")
def subnormal_log2_float64(x: np.float64) -> np.float64:
    """log2(x) of a positive subnormal number."""
    k, f = parts_float64(x * UP_64)
    return joined_float64(k - UP_STEPS_64, f)


@inlined("contract")
def log2_float64(x: np.float64) -> np.float64:
    """log2(x) for every float64; at most 0.87 ULP (2.8e7 inputs measured)."""
    k, f = parts_float64(x)
    result = joined_float64(k, f)
    if unusual_float64(x):
        result = limit_float64(x)
        if subnormal_float64(x):
            result = subnormal_log2_float64(x)
    return result
