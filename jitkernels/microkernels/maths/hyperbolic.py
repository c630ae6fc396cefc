"""cosh and sinh for float32 and float64, without a division and without cancellation.

|x| = k * ln 2 + r as in `exp`. With the even and the odd part of exp(r), which are polynomials in r**2,

    cosh(x) = cosh(r) * (2**k + 2**-k) / 2 + sinh(r) * (2**k - 2**-k) / 2
    sinh(x) = cosh(r) * (2**k - 2**-k) / 2 + sinh(r) * (2**k + 2**-k) / 2

which is sinh(r) alone where k is 0. cosh(r) - 1 is what is computed, as it rounds to less. Half of the result is
computed, as 2**k alone may be infinite where the result is not.

The polynomials come from a Remez exchange for (sinh(r) / r - 1) / r**2 and (cosh(r) - 1) / r**2.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import LN2_HIGH_32, LN2_HIGH_64, LN2_LOW_32, LN2_LOW_64, LOG2E_32, LOG2E_64
from jitkernels.microkernels.maths.strict_arithmetic import times
from jitkernels.microkernels.maths.tanh import HALF_32, HALF_64, SIGN_32, SIGN_64

MAGIC_32 = np.float32(1.5 * 2.0**23 + 125)
HIGHEST_32 = np.float32(89.5)  # where both are infinite and 2**(k-2) is not
TINY_32 = np.float32(2.0**-13)  # below it sinh(x) is x
QUARTERS_32 = np.int32(250 << 23)  # bits of 2**(k-2) and 2**(-k-2) together
ZERO_BITS_32 = np.int32(0)
S3_32 = np.float32(0.16666667)  # relative error of sinh(r): 2**-34.3
S5_32 = np.float32(0.008333175)
S7_32 = np.float32(0.00019974123)
C4_32 = np.float32(0.04166646)  # absolute error of cosh(r): 2**-33.2
C6_32 = np.float32(0.0013935426)

MAGIC_64 = np.float64(1.5 * 2.0**52 + 1021)
HIGHEST_64 = np.float64(710.6)
TINY_64 = np.float64(2.0**-28)
QUARTERS_64 = np.int64(2042 << 52)
ZERO_BITS_64 = np.int64(0)
S3_64 = np.float64(0.16666666666666666)  # relative error of sinh(r): 2**-65.2
S5_64 = np.float64(0.008333333333334426)
S7_64 = np.float64(0.00019841269837077172)
S9_64 = np.float64(2.7557326249217962e-06)
S11_64 = np.float64(2.5046754942777975e-08)
S13_64 = np.float64(1.7588053934968564e-10)
C4_64 = np.float64(0.041666666666666685)  # absolute error of cosh(r): 2**-70
C6_64 = np.float64(0.0013888888888873283)
C8_64 = np.float64(2.4801587349202195e-05)
C10_64 = np.float64(2.75572518195032e-07)
C12_64 = np.float64(2.0921770015958163e-09)


@inlined("contract")
def parts_float32(x: np.float32) -> tuple[np.float32, np.float32, np.float32, np.float32, np.float32]:
    """For 0 <= x: 2**(k-2) and 2**(-k-2), r, and what sinh(r) and cosh(r) are more than r and 1."""
    y = min(x, HIGHEST_32)
    shifted = y * LOG2E_32 + MAGIC_32
    k = shifted - MAGIC_32
    r = (y - k * LN2_HIGH_32) - k * LN2_LOW_32
    square = r * r
    sinh = ((S7_32 * square + S5_32) * square + S3_32) * (square * r)
    cosh = ((C6_32 * square + C4_32) * square + HALF_32) * square
    bits = shifted.view(np.int32) << 23
    up = bits.view(np.float32)
    down = max(QUARTERS_32 - bits, ZERO_BITS_32).view(np.float32)
    return up, down, r, sinh, cosh


@inlined("contract")
def parts_float64(x: np.float64) -> tuple[np.float64, np.float64, np.float64, np.float64, np.float64]:
    """For 0 <= x: 2**(k-2) and 2**(-k-2), r, and what sinh(r) and cosh(r) are more than r and 1."""
    y = min(x, HIGHEST_64)
    shifted = y * LOG2E_64 + MAGIC_64
    k = shifted - MAGIC_64
    r = (y - k * LN2_HIGH_64) - k * LN2_LOW_64
    square = r * r
    fourth = square * square
    s = ((S13_64 * square + S11_64) * fourth + (S9_64 * square + S7_64)) * fourth + (S5_64 * square + S3_64)
    c = ((C12_64 * square + C10_64) * fourth + (C8_64 * square + C6_64)) * fourth + (C4_64 * square + HALF_64)
    sinh = s * (square * r)
    cosh = c * square
    bits = shifted.view(np.int64) << 52
    up = bits.view(np.float64)
    down = max(QUARTERS_64 - bits, ZERO_BITS_64).view(np.float64)
    return up, down, r, sinh, cosh


@inlined("contract")
def cosh_float32(x: np.float32) -> np.float32:
    """cosh(x) for every float32; at most 1.04 ULP (1.1e9 inputs measured)."""
    up, down, r, sinh, cosh = parts_float32(abs(x))
    minus = up - down
    h = (r * minus + (cosh * (up + down) + (sinh * minus + down))) + up  # since up + down may lose down to rounding
    return h + h


@inlined("contract")
def cosh_float64(x: np.float64) -> np.float64:
    """cosh(x) for every float64; at most 1.09 ULP (2.8e7 inputs measured)."""
    up, down, r, sinh, cosh = parts_float64(abs(x))
    minus = up - down
    h = (r * minus + (cosh * (up + down) + (sinh * minus + down))) + up  # since up + down may lose down to rounding
    return h + h


@inlined("contract")
def sinh_float32(x: np.float32) -> np.float32:
    """sinh(x) for every float32; at most 1.24 ULP (1.1e9 inputs measured)."""
    size = abs(x)
    up, down, r, sinh, cosh = parts_float32(size)
    plus, minus = up + down, up - down
    h = (r * plus + (cosh * minus + times(sinh, plus))) + minus
    sign = x.view(np.int32) & SIGN_32
    signed = ((h + h).view(np.int32) | sign).view(np.float32)
    return x if size < TINY_32 else signed


@inlined("contract")
def sinh_float64(x: np.float64) -> np.float64:
    """sinh(x) for every float64; at most 1.63 ULP (2.8e7 inputs measured)."""
    size = abs(x)
    up, down, r, sinh, cosh = parts_float64(size)
    plus, minus = up + down, up - down
    h = (r * plus + (cosh * minus + times(sinh, plus))) + minus
    sign = x.view(np.int64) & SIGN_64
    signed = ((h + h).view(np.int64) | sign).view(np.float64)
    return x if size < TINY_64 else signed
