"""expm1 for float32 and float64, from the range reduction of `exp`.

expm1(x) = 2**k * expm1(r) + (2**k - 1), where expm1(r) = r + r**2 * Q(r) keeps its relative accuracy near zero and its
product with a power of two is exact. Half of it is computed, as 2**k alone may be infinite where the result is not;
what is too small to be halved is its own expm1.

The polynomials come from a Remez exchange for (expm1(r) - r) / r**2, the error weighted relative to expm1(r).
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import LN2_HIGH_32, LN2_HIGH_64, LN2_LOW_32, LN2_LOW_64, LOG2E_32, LOG2E_64
from jitkernels.microkernels.maths.tanh import HALF_32, HALF_64, MAGIC_32, MAGIC_64

LOWEST_32 = np.float32(-30)  # where expm1 is -1
HIGHEST_32 = np.float32(88.8)  # where it is infinite and 2**(k-1) is not
TINY_32 = np.float32(2.0**-25)
C2_32 = np.float32(0.5)  # relative error of the whole polynomial: 2**-31.1
C3_32 = np.float32(0.16666666)
C4_32 = np.float32(0.041666493)
C5_32 = np.float32(0.008333548)
C6_32 = np.float32(0.0013932309)
C7_32 = np.float32(0.00019760191)

LOWEST_64 = np.float64(-50)
HIGHEST_64 = np.float64(709.9)
TINY_64 = np.float64(2.0**-54)
C2_64 = np.float64(0.5000000000000001)  # relative error of the whole polynomial: 2**-58
C3_64 = np.float64(0.1666666666666667)
C4_64 = np.float64(0.04166666666664823)
C5_64 = np.float64(0.008333333333325364)
C6_64 = np.float64(0.0013888888897448076)
C7_64 = np.float64(0.00019841269878043946)
C8_64 = np.float64(2.480157110316927e-05)
C9_64 = np.float64(2.7557250957793417e-06)
C10_64 = np.float64(2.75707120546425e-07)
C11_64 = np.float64(2.510715463232403e-08)
C12_64 = np.float64(1.6867573141325008e-09)


@inlined("contract")
def expm1_float32(x: np.float32) -> np.float32:
    """expm1(x) for every float32; at most 1.45 ULP (1.1e9 inputs measured)."""
    y = min(max(x, LOWEST_32), HIGHEST_32)
    shifted = y * LOG2E_32 + MAGIC_32
    k = shifted - MAGIC_32
    high = y - k * LN2_HIGH_32
    r = high - k * LN2_LOW_32
    rest = (high - r) - k * LN2_LOW_32  # the rounding error of r
    square = r * r
    p = ((C7_32 * r + C6_32) * square + (C5_32 * r + C4_32)) * square + (C3_32 * r + C2_32)
    p = (p * square + rest) + r
    scale = (shifted.view(np.int32) << 23).view(np.float32)
    h = p * scale + (scale - HALF_32)
    return x if abs(x) < TINY_32 else h + h


@inlined("contract")
def expm1_float64(x: np.float64) -> np.float64:
    """expm1(x) for every float64; at most 1.66 ULP (2.8e7 inputs measured)."""
    y = min(max(x, LOWEST_64), HIGHEST_64)
    shifted = y * LOG2E_64 + MAGIC_64
    k = shifted - MAGIC_64
    high = y - k * LN2_HIGH_64
    r = high - k * LN2_LOW_64
    rest = (high - r) - k * LN2_LOW_64
    square = r * r
    p = ((C12_64 * square + (C11_64 * r + C10_64)) * square + (C9_64 * r + C8_64)) * square + (C7_64 * r + C6_64)
    p = (p * square + (C5_64 * r + C4_64)) * square + (C3_64 * r + C2_64)
    p = (p * square + rest) + r
    scale = (shifted.view(np.int64) << 52).view(np.float64)
    h = p * scale + (scale - HALF_64)
    return x if abs(x) < TINY_64 else h + h
