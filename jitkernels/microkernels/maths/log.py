"""log for float32 and float64, and what the other logarithms have in common with it.

x = 2**k * (1 + f), where 1 + f is in [sqrt(1/2), sqrt(2)] and f is exact: adding what is between the bits of sqrt(1/2)
and of 1 carries into the exponent where it has to be one more (Cody & Waite; fdlibm, e_log.c). Then

    log(x) = k * ln 2 + log(1 + f),    ln 2 in two parts, of which the high one times any k is exact.

float32: log(1 + f) = f - f**2 / 2 + f**3 * P(f), which needs no division. float64 would need 20 coefficients, so it has
the odd series of s = f / (2 + f), log(1 + f) = 2 atanh(s), as fdlibm: with f**2 / 2 taken out, what is rounded is small
beside f.

Zero, subnormal, negative, infinite numbers and NaN are one test of the bits, of all lanes together. Behind it all but
subnormal numbers are a quotient and some choices; those have another test, as only they take the polynomial again.

The polynomials come from a Remez exchange in 45-digit arithmetic, the error weighted relative to log(1 + f);
coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined, seldom
from jitkernels.microkernels.maths.exp import EXPONENT_32, ONE_32, ONE_64
from jitkernels.microkernels.maths.strict_arithmetic import times

ZERO_32 = np.float32(0)
HALF_32 = np.float32(0.5)
INFINITY_32 = np.float32(np.inf)
NAN_32 = np.float32(np.nan)
SMALLEST_BITS_32 = np.int32(1 << 23)  # of the smallest normal number
NORMAL_BITS_32 = np.uint32(0x7F000000)  # from these to those of infinity
UNIT_BITS_32 = np.int32(1)  # of the smallest subnormal number
SUBNORMAL_BITS_32 = np.uint32((1 << 23) - 1)  # from these to those of the smallest normal number
SQRT_HALF_BITS_32 = np.int32(0x3F3504F3)
UP_32 = np.float32(2.0**23)  # makes subnormal numbers normal
UP_STEPS_32 = np.float32(23)
LN2_HIGH_32 = np.float32(0.693145751953125)
LN2_LOW_32 = np.float32(1.4286068203094172e-06)
C3_32 = np.float32(0.3333333)  # relative error of log(1 + f): 2**-27.4
C4_32 = np.float32(-0.2500082)
C5_32 = np.float32(0.20001242)
C6_32 = np.float32(-0.1662341)
C7_32 = np.float32(0.14201587)
C8_32 = np.float32(-0.13159601)
C9_32 = np.float32(0.12762128)
C10_32 = np.float32(-0.076363295)

ZERO_64 = np.float64(0)
HALF_64 = np.float64(0.5)
TWO_64 = np.float64(2)
INFINITY_64 = np.float64(np.inf)
NAN_64 = np.float64(np.nan)
SMALLEST_BITS_64 = np.int64(1 << 52)
NORMAL_BITS_64 = np.uint64(0x7FE0000000000000)
UNIT_BITS_64 = np.int64(1)
SUBNORMAL_BITS_64 = np.uint64((1 << 52) - 1)
SQRT_HALF_BITS_64 = np.int64(0x3FE6A09E667F3BCD)
CARRY_64 = np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
MANTISSA_64 = np.int64(2**52 - 1)
COUNT_BITS_64 = np.int64(0x4330000000000000)  # of 2**52, in whose low bits an integer is one
COUNT_64 = np.float64(2.0**52 + 1023)
UP_64 = np.float64(2.0**52)
UP_STEPS_64 = np.float64(52)
LN2_HIGH_64 = np.float64(6.93147180369123816490e-01)
LN2_LOW_64 = np.float64(1.90821492927058770002e-10)
HIGH_BITS_64 = np.int64(-(2**32))
S3_64 = np.float64(2 * 0.3333333333333367)  # relative error of log(1 + f): 2**-59.5
S5_64 = np.float64(2 * 0.19999999999708265)
S7_64 = np.float64(2 * 0.1428571437103483)
S9_64 = np.float64(2 * 0.11111099299731787)
S11_64 = np.float64(2 * 0.09091781599825938)
S13_64 = np.float64(2 * 0.07657037319654413)
S15_64 = np.float64(2 * 0.07397873508774436)


@inlined("contract")
def parts_float32(x: np.float32) -> tuple[np.float32, np.float32]:
    """k and f of a normal number."""
    bits = x.view(np.int32)
    above = bits - SQRT_HALF_BITS_32
    f = (bits - (above & EXPONENT_32)).view(np.float32) - ONE_32
    return np.float32(above >> 23), f


@inlined("contract")
def scaled_parts_float32(x: np.float32) -> tuple[np.float32, np.float32]:
    """2**23 * k, for callers that multiply k anyway, and f."""
    bits = x.view(np.int32)
    scaled = (bits - SQRT_HALF_BITS_32) & EXPONENT_32
    return np.float32(scaled), (bits - scaled).view(np.float32) - ONE_32


@inlined("contract")
def parts_float64(x: np.float64) -> tuple[np.float64, np.float64]:
    """k and f of a normal number."""
    carried = x.view(np.int64) + CARRY_64
    f = ((carried & MANTISSA_64) + SQRT_HALF_BITS_64).view(np.float64) - ONE_64
    count = (carried.view(np.uint64) >> 52).view(np.int64) | COUNT_BITS_64
    return count.view(np.float64) - COUNT_64, f


@inlined()
def unusual_float32(x: np.float32) -> np.bool_:
    """Whether x is not a normal positive number."""
    return (x.view(np.int32) - SMALLEST_BITS_32).view(np.uint32) >= NORMAL_BITS_32


@inlined()
def unusual_float64(x: np.float64) -> np.bool_:
    """Whether x is not a normal positive number."""
    return (x.view(np.int64) - SMALLEST_BITS_64).view(np.uint64) >= NORMAL_BITS_64


@inlined()
def subnormal_float32(x: np.float32) -> np.bool_:
    """Whether x is a positive subnormal number."""
    return (x.view(np.int32) - UNIT_BITS_32).view(np.uint32) < SUBNORMAL_BITS_32


@inlined()
def subnormal_float64(x: np.float64) -> np.bool_:
    """Whether x is a positive subnormal number."""
    return (x.view(np.int64) - UNIT_BITS_64).view(np.uint64) < SUBNORMAL_BITS_64


@inlined()
def limit_float32(x: np.float32) -> np.float32:
    """The logarithm of zero, negative numbers, infinity and NaN, and 0 of others.

    One division sets NumPy's flags: -1 / 0 for zero, and 0 / 0 for a negative number.
    """
    failing = (-ONE_32 if x == ZERO_32 else ZERO_32) / abs(max(x, ZERO_32))
    return failing if x < INFINITY_32 else x


@inlined()
def limit_float64(x: np.float64) -> np.float64:
    """The logarithm of zero, negative numbers, infinity and NaN, and 0 of others.

    One division sets NumPy's flags: -1 / 0 for zero, and 0 / 0 for a negative number.
    """
    failing = (-ONE_64 if x == ZERO_64 else ZERO_64) / abs(max(x, ZERO_64))
    return failing if x < INFINITY_64 else x


@inlined("contract")
def summed_float32(start: np.float32, f: np.float32, low: np.float32) -> np.float32:
    """start + log(1 + f) + low, low being small."""
    square = f * f
    fourth = square * square
    first = (C6_32 * f + C5_32) * square + (C4_32 * f + C3_32)
    last = (C10_32 * f + C9_32) * square + (C8_32 * f + C7_32)
    p = (last * fourth + first) * f
    rest = (p - HALF_32) * square + low
    return start + (rest + f)


@inlined("contract")
def joined_float32(k: np.float32, f: np.float32) -> np.float32:
    """k * ln 2 + log(1 + f)."""
    return summed_float32(k * LN2_HIGH_32, f, times(k, LN2_LOW_32))


@inlined("contract")
def series_float64(f: np.float64) -> tuple[np.float64, np.float64]:
    """f**2 / 2, and log(1 + f) - (f - f**2 / 2)."""
    s = f / (TWO_64 + f)
    square = s * s
    fourth = square * square
    odd = (S15_64 * fourth + S11_64) * fourth + S7_64
    even = (S13_64 * fourth + S9_64) * fourth + S5_64
    p = ((odd * square + even) * square + S3_64) * square
    half = HALF_64 * f * f
    return half, s * (half + p)


@inlined("contract")
def summed_float64(start: np.float64, f: np.float64, low: np.float64) -> np.float64:
    """start + log(1 + f) + low, low being small."""
    half, rest = series_float64(f)
    return start - ((half - (rest + low)) - f)


@inlined("contract")
def joined_float64(k: np.float64, f: np.float64) -> np.float64:
    """k * ln 2 + log(1 + f)."""
    return summed_float64(k * LN2_HIGH_64, f, times(k, LN2_LOW_64))


@inlined("contract")
def nine_terms_float32(
    f: np.float32,
    c2: np.float32,
    c3: np.float32,
    c4: np.float32,
    c5: np.float32,
    c6: np.float32,
    c7: np.float32,
    c8: np.float32,
    c9: np.float32,
    c10: np.float32,
) -> np.float32:
    """c2 f**2 + c3 f**3 + ..., of any coefficients."""
    square = f * f
    fourth = square * square
    p = (c5 * f + c4) * square + (c3 * f + c2)
    q = (c9 * f + c8) * square + (c7 * f + c6)
    p = (c10 * fourth + q) * fourth + p
    return square * p


@inlined("contract")
def split_float64(f: np.float64) -> tuple[np.float64, np.float64]:
    """log(1 + f) as a sum of two numbers, the first of few bits, so that its product with a short constant is exact."""
    half, rest = series_float64(f)
    high = ((f - half).view(np.int64) & HIGH_BITS_64).view(np.float64)
    return high, ((f - high) - half) + rest


@seldom("contract")
def subnormal_log_float32(x: np.float32) -> np.float32:
    """log(x) of a positive subnormal number."""
    k, f = parts_float32(x * UP_32)
    return joined_float32(k - UP_STEPS_32, f)


@inlined("contract")
def log_float32(x: np.float32) -> np.float32:
    """log(x) for every float32; at most 0.88 ULP (1.1e9 inputs measured)."""
    k, f = parts_float32(x)
    result = joined_float32(k, f)
    if unusual_float32(x):
        result = limit_float32(x)
        if subnormal_float32(x):
            result = subnormal_log_float32(x)
    return result


@seldom("contract")
def subnormal_log_float64(x: np.float64) -> np.float64:
    """log(x) of a positive subnormal number."""
    k, f = parts_float64(x * UP_64)
    return joined_float64(k - UP_STEPS_64, f)


@inlined("contract")
def log_float64(x: np.float64) -> np.float64:
    """log(x) for every float64; at most 0.86 ULP (2.8e7 inputs measured)."""
    k, f = parts_float64(x)
    result = joined_float64(k, f)
    if unusual_float64(x):
        result = limit_float64(x)
        if subnormal_float64(x):
            result = subnormal_log_float64(x)
    return result
