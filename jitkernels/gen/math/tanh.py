import numpy as np

from jitkernels.gen.math import exp
from jitkernels.gen.math.exp import (
    C2_32, C3_32, C4_32, C5_32, C6_32, LN2_HIGH_32, LN2_LOW_32, LOG2E_32, ONE_32, SHIFT_32,
    C2_64, C3_64, C4_64, C5_64, C6_64, C7_64, C8_64, C9_64, C10_64, C11_64, LN2_HIGH_64, LN2_LOW_64, LOG2E_64,
    ONE_64, SHIFT_64
)
from jitkernels.native.source import inlined

ZERO_32 = np.float32(0)
ZERO_64 = np.float64(0)
TWO_32 = np.float32(2)
TWO_64 = np.float64(2)
MAGIC_32 = np.float32(1.5 * 2.0**23 + 127)
MAGIC_64 = np.float64(1.5 * 2.0**52 + 1023)
SIGN_32 = np.int32(-(2**31))
SIGN_64 = np.int64(-(2**63))
SMALL_32 = np.float32(0.549)
SMALL_64 = np.float64(0.549)
HIGHEST_32 = np.float32(20)
HIGHEST_64 = np.float64(40)

@inlined("contract")
def reduced_expm1_float32(x: np.float32) -> np.float32:
    shifted = x * LOG2E_32 + MAGIC_32
    k = shifted - MAGIC_32
    r = (x - k * LN2_HIGH_32) - k * LN2_LOW_32
    p = (((C6_32 * r + C5_32) * r + C4_32) * r + C3_32) * r + C2_32
    p = p * (r * r) + r
    scale = np.int32(np.float32(shifted).view(np.int32) << SHIFT_32).view(np.float32)
    return p * scale + (scale - ONE_32)


@inlined("contract")
def reduced_expm1_float64(x: np.float64) -> np.float64:
    shifted = x * LOG2E_64 + MAGIC_64
    k = shifted - MAGIC_64
    r = (x - k * LN2_HIGH_64) - k * LN2_LOW_64
    square = r * r
    p = ((C11_64 * r + C10_64) * square + (C9_64 * r + C8_64)) * square + (C7_64 * r + C6_64)
    p = (p * square + (C5_64 * r + C4_64)) * square + (C3_64 * r + C2_64)
    p = p * square + r
    scale = np.int64(np.float64(shifted).view(np.int64) << SHIFT_64).view(np.float64)
    return p * scale + (scale - ONE_64)

@inlined("contract")
def tanh_float32(x: np.float32) -> np.float32:
    size = abs(x)
    grown = reduced_expm1_float32(min(size + size, HIGHEST_32))
    small = size < SMALL_32
    result = (ZERO_32 if small else ONE_32) + (grown if small else -TWO_32) / (grown + TWO_32)
    sign = np.int32(np.float32(x).view(np.int32) & SIGN_32)
    return np.int32(np.float32(result).view(np.int32) | sign).view(np.float32)


@inlined("contract")
def tanh_float64(x: np.float64) -> np.float64:
    size = abs(x)
    grown = reduced_expm1_float64(min(size + size, HIGHEST_64))
    small = size < SMALL_64
    result = (ZERO_64 if small else ONE_64) + (grown if small else -TWO_64) / (grown + TWO_64)
    sign = np.float64(x).view(np.int64) & SIGN_64
    return np.int64(np.float64(result).view(np.int64) | sign).view(np.float64)
