"""tanh for float32 and float64: odd, exact for zeros and subnormal numbers, one division.

With h = (exp(2|x|) - 1) / 2, tanh|x| = h / (1 + h). Written as

    limit - limit * (limit / (1 + h)),    limit = min(h, 1)

this is h - h * h/(1+h) for small x, where the errors of sum and quotient are scaled by h, and 1 - 1/(1+h)
for large x, where they are scaled by the quotient; the two meet at tanh = 1/2. No other select is needed,
and NaN passes.

h comes from the range reduction and polynomial of `exp`, without the leading 1 so that it keeps its
relative accuracy near zero: h = 2**(k-1) * (exp(r) - 1) + (2**(k-1) - 1/2), where the first product is
exact. The exponent bias less one is part of `MAGIC`. x is limited to where tanh rounds to one, so that a
single scale factor is enough.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import (
    C2_32,
    C2_64,
    C3_32,
    C3_64,
    C4_32,
    C4_64,
    C5_32,
    C5_64,
    C6_32,
    C6_64,
    C7_64,
    C8_64,
    C9_64,
    C10_64,
    C11_64,
    LN2_HIGH_64,
    LN2_LOW_64,
    LOG2E_32,
    LOG2E_64,
    ONE_32,
    ONE_64,
)

# One constant is enough for ln 2 in float32: its error is 2**-29, and the effect of k times that on the result shrinks
# with 2**-k.
LN2_32 = np.float32(0.6931472)
MAGIC_32 = np.float32(1.5 * 2.0**23 + 126)
HIGHEST_32 = np.float32(20)
HALF_32 = np.float32(0.5)
SIGN_32 = np.int32(-(2**31))

MAGIC_64 = np.float64(1.5 * 2.0**52 + 1022)
HIGHEST_64 = np.float64(40)
HALF_64 = np.float64(0.5)
SIGN_64 = np.int64(-(2**63))


@inlined("contract")
def tanh_float32(x: np.float32) -> np.float32:
    """tanh(x) for every float32, infinities and NaN included; at most 1.82 ULP (all inputs measured)."""
    size = abs(x)
    y = min(size + size, HIGHEST_32)
    shifted = y * LOG2E_32 + MAGIC_32
    k = shifted - MAGIC_32
    r = y - k * LN2_32
    square = r * r
    p = (C6_32 * square + (C5_32 * r + C4_32)) * square + (C3_32 * r + C2_32)
    p = p * square + r
    scale = (shifted.view(np.int32) << 23).view(np.float32)
    h = p * scale + (scale - HALF_32)
    limit = min(h, ONE_32)
    result = limit - limit * (limit / (ONE_32 + h))
    sign = x.view(np.int32) & SIGN_32
    return (result.view(np.int32) | sign).view(np.float32)


@inlined("contract")
def tanh_float64(x: np.float64) -> np.float64:
    """tanh(x) for every float64, infinities and NaN included; at most 1.85 ULP (2.8e7 inputs measured)."""
    size = abs(x)
    y = min(size + size, HIGHEST_64)
    shifted = y * LOG2E_64 + MAGIC_64
    k = shifted - MAGIC_64
    high = y - k * LN2_HIGH_64
    r = high - k * LN2_LOW_64
    # The rounding error of r. h cancels for k = 1 and r < 0, and without this term the result is off by 2.1 ULP.
    rest = (high - r) - k * LN2_LOW_64
    square = r * r
    p = ((C11_64 * r + C10_64) * square + (C9_64 * r + C8_64)) * square + (C7_64 * r + C6_64)
    p = (p * square + (C5_64 * r + C4_64)) * square + (C3_64 * r + C2_64)
    p = (p * square + rest) + r
    scale = (shifted.view(np.int64) << 52).view(np.float64)
    h = p * scale + (scale - HALF_64)
    limit = min(h, ONE_64)
    result = limit - limit * (limit / (ONE_64 + h))
    sign = x.view(np.int64) & SIGN_64
    return (result.view(np.int64) | sign).view(np.float64)
