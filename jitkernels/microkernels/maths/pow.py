"""x**y for float32 and float64: exp2(y * log2(x)) with a logarithm of more digits than the result has.

An error of log2(x) counts y times, which may be 2**7 or 2**10 in the result. So log2(x) is the sum of two numbers, in
the series of s = f / (2 + f) of fdlibm's e_pow.c: what a quotient or product has rounded away is kept beside it.
Each such rest is one fused multiply-add, which is cheaper than numbers cut into halves, whose products are exact.

Exponents of 2 and 1, for float64 -1 as well, make a product or a quotient, a few instructions where all lanes
have one of them. An element's result is the same whatever its neighbours' exponents are.

What is no power of a normal positive number, or is none itself, has a path of its own behind one test of all lanes: for
float32 in float64, for float64 with 2**k applied as two factors. The special values are those of C's `pow`.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import cold, inlined
from jitkernels.microkernels.maths.exp import MAGIC, ONE, ten_terms, times_power_float64
from jitkernels.microkernels.maths.exp2 import C_32, C_64
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.log import HALF, INFINITY, UNUSUAL, UP, UP_STEPS, ZERO, parts_float32, parts_float64
from jitkernels.microkernels.maths.strict_arithmetic import times, times_plus_float32, times_plus_float64

ONE_32, ONE_64 = ONE
TWO_32, TWO_64 = np.float32(2), np.float64(2)
UP_32, UP_64 = UP
UP_STEPS_32, UP_STEPS_64 = UP_STEPS
ZERO_64, INFINITY_64, MAGIC_64 = ZERO[1], INFINITY[1], MAGIC[1]
unusual_float32, unusual_float64 = UNUSUAL

# log2((1 + s) / (1 - s)) / s, of s**2: relative error 2**-37.8
L_32 = coefficients(
    np.float64, 2.88539008179008, 0.9617966733501693, 0.5770835832594695, 0.41167282712503117, 0.3407280081541227
)
# 2**r: relative error 2**-29
E_32 = coefficients(
    np.float64, 1.000000000553975, 0.6931472057363737, 0.24022646891088636, 0.05550328777885616, 0.009618488927044274,
    0.001339993106994021, 0.00015345818488912626,
)  # fmt: skip
LOWEST_32 = np.float64(-160)
HIGHEST_32 = np.float64(140)
MOST_32 = np.float32(125)  # for which 2**t is a normal number
MAGIC_32 = np.float64(1.5 * 2.0**52)  # whose sum has an integer in its low bits
ROUNDING_32 = np.float32(1.5 * 2.0**23)
FACTOR_32 = np.float32(2.88539)  # 2 * log2(e), and the rest
FACTOR_LOW_32 = np.float32(3.851926e-08)
# (log2((1 + s) / (1 - s)) / s - 2 * log2(e)) / s**2, of s**2: relative error of the sum 2**-36.4
S3_32, S5_32, S7_32, S9_32 = coefficients(np.float32, 0.9617967, 0.5770788, 0.41192728, 0.33648953)
SMALLEST_32 = np.float32(2.0**-126)

THREE_64 = np.float64(3)
# (log2((1 + s) / (1 - s)) * 3 / (2 * log2(e)) / s - 3 - s**2) / s**4, of s**2: relative error of the sum 2**-66.3
R0_64, R2_64, R4_64, R6_64, R8_64, R10_64, R12_64 = coefficients(
    np.float64, 0.6000000000000338, 0.4285714285514936, 0.3333333377988912, 0.27272676550008595, 0.23080136037059978,
    0.19885225502834672, 0.19794504956130834,
)  # fmt: skip
FACTOR_64 = np.float64(0.9617966939259756)  # 2 * log2(e) / 3, and the rest
FACTOR_LOW_64 = np.float64(5.0577616648125907e-17)
LOWEST_64 = np.float64(-1080)
HIGHEST_64 = np.float64(1030)
MOST_64 = np.float64(1000)
SMALLEST_64 = np.float64(2.0**-1022)


@inlined("contract")
def logarithm_float32(k: np.float32, f: np.float32) -> np.float64:
    """k + log2(1 + f), to 37 bits."""
    wide = np.float64(f)
    s = wide / (TWO_64 + wide)
    square = s * s
    p = (((L_32[4] * square + L_32[3]) * square + L_32[2]) * square + L_32[1]) * square + L_32[0]
    return s * p + np.float64(k)


@inlined()
def extended_float64(size: np.float64, log: np.float64) -> np.float64:
    """The extension of the logarithm `log` to zero, infinity and NaN."""
    return (log if size > ZERO_64 else -INFINITY_64) if size < INFINITY_64 else size


@inlined("contract")
def raised_float32(t: np.float64) -> np.float32:
    """2**t for abs(t) < 1000."""
    shifted = t + MAGIC_32
    r = t - (shifted - MAGIC_32)
    p = (((((E_32[6] * r + E_32[5]) * r + E_32[4]) * r + E_32[3]) * r + E_32[2]) * r + E_32[1]) * r + E_32[0]
    return np.float32((p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64))


def _signed(form: FloatFormat, one: Any, zero: Any, one_half: Any, infinity: Any) -> Any:
    integer = form.integer

    @inlined("contract")
    def signed(x: Any, y: Any, power: Any) -> Any:
        """x**y, from `power`, that of abs(x)."""
        size = abs(x)
        power = one if y == zero or x == one or (size == one and abs(y) == infinity) else power
        is_whole = np.floor(y) == y
        half = y * one_half
        is_odd = is_whole and np.floor(half) != half
        is_negative = x.view(integer) < 0
        is_failing = is_negative and not is_whole and size > zero and size < infinity
        power = np.sqrt(x if is_failing else size) if is_failing else power  # sets the invalid flag with the NaN
        return -power if is_negative and is_odd else power

    return signed


signed_float32, signed_float64 = for_both(_signed, ONE, ZERO, HALF, INFINITY)


@cold("contract")
def unusual_pow_float32(x: np.float32, y: np.float32) -> np.float32:
    """x**y for all float32, in float64."""
    size = abs(x)
    is_small = size < SMALLEST_32
    k, f = parts_float32(size * (UP_32 if is_small else ONE_32))
    log = logarithm_float32(k - UP_STEPS_32 if is_small else k, f)
    wide = np.float64(y) * extended_float64(np.float64(size), log)
    result: np.float32 = signed_float32(x, y, raised_float32(min(max(wide, LOWEST_32), HIGHEST_32)))
    return result


@inlined("contract")
def general_pow_float32(x: np.float32, y: np.float32) -> np.float32:
    """x**y for all float32, of any exponent; at most 1.7 ULP (8e7 pairs measured)."""
    k, f = parts_float32(x)
    inverse = ONE_32 / (TWO_32 + f)
    s = f * inverse
    s_low = times_plus_float32(-s, f, f - TWO_32 * s) * inverse
    square = s * s
    series = ((S9_32 * square + S7_32) * square + S5_32) * square + S3_32
    factor = square * series + FACTOR_32
    factor_low = times_plus_float32(square, series, FACTOR_32 - factor) + FACTOR_LOW_32
    slope = square * FACTOR_32 + FACTOR_32
    start = times(s, factor)
    start_low = times_plus_float32(s, factor, -start) + (s * factor_low + s_low * slope)
    whole = k + start
    low = ((k - whole) + start) + start_low
    shifted = y * whole + ROUNDING_32
    count = shifted - ROUNDING_32
    r = times_plus_float32(y, whole, -count) + y * low
    p = (((((C_32[6] * r + C_32[5]) * r + C_32[4]) * r + C_32[3]) * r + C_32[2]) * r + C_32[1]) * r + ONE_32
    result = (p.view(np.int32) + (shifted.view(np.int32) << 23)).view(np.float32)
    if unusual_float32(x) or not abs(count) < MOST_32:
        result = unusual_pow_float32(x, y)
    return result


@inlined("contract")
def pow_float32(x: np.float32, y: np.float32) -> np.float32:
    """x**y for all float32; at most 1.7 ULP (8e7 pairs measured). No lane sets another's flags."""
    result = times(x, x if y == TWO_32 else ONE_32)
    if y != TWO_32 and y != ONE_32:
        result = general_pow_float32(x, y)
    return result


@inlined("contract")
def logarithm_float64(k: np.float64, f: np.float64) -> tuple[np.float64, np.float64]:
    """k + log2(1 + f), to 62 bits, as the sum of two."""
    inverse = ONE_64 / (f + TWO_64)
    s = f * inverse
    s_low = times_plus_float64(-s, f, f - TWO_64 * s) * inverse
    square = times(s, s)
    square_low = times_plus_float64(s, s, -square) + TWO_64 * s * s_low
    fourth = square * square
    even = (R12_64 * fourth + R8_64) * fourth + R4_64
    odd = (R10_64 * fourth + R6_64) * fourth + R2_64
    rest = ((even * square + odd) * square + R0_64) * fourth + square_low
    series = THREE_64 + (square + rest)
    series_low = (square - (series - THREE_64)) + rest
    product = times(s, series)
    product_low = times_plus_float64(s, series, -product) + (s * series_low + s_low * series)
    scaled = times(product, FACTOR_64)
    scaled_low = times_plus_float64(product, FACTOR_64, -scaled) + (product * FACTOR_LOW_64 + product_low * FACTOR_64)
    whole = k + scaled
    return whole, ((k - whole) + scaled) + scaled_low


fraction_terms_float64 = ten_terms(C_64)


@inlined("contract")
def fraction_float64(r: np.float64) -> np.float64:
    """2**r for -0.5 <= r <= 0.5."""
    value: np.float64 = (fraction_terms_float64(r, r * r) * r + C_64[1]) * r + ONE_64
    return value


@cold("contract")
def unusual_pow_float64(x: np.float64, y: np.float64) -> np.float64:
    """x**y for all float64, 2**k applied as two factors."""
    size = abs(x)
    is_small = size < SMALLEST_64
    k, f = parts_float64(size * (UP_64 if is_small else ONE_64))
    high, low = logarithm_float64(k - UP_STEPS_64 if is_small else k, f)
    plain = y * extended_float64(size, high + low)
    t = min(max(plain, LOWEST_64), HIGHEST_64)
    shifted = t + MAGIC_64
    count = shifted - MAGIC_64
    r = times_plus_float64(y, high, -count) + y * low if abs(plain) < -LOWEST_64 else t - count
    p = fraction_float64(r)
    result: np.float64 = signed_float64(x, y, times_power_float64(p, shifted))
    return result


@inlined("contract")
def general_pow_float64(x: np.float64, y: np.float64) -> np.float64:
    """x**y for all float64, of any exponent; at most 1.9 ULP (2e7 pairs measured)."""
    k, f = parts_float64(x)
    high, low = logarithm_float64(k, f)
    shifted = y * high + MAGIC_32
    count = shifted - MAGIC_32
    p = fraction_float64(times_plus_float64(y, high, -count) + y * low)
    result = (p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64)
    if unusual_float64(x) or not abs(count) < MOST_64:
        result = unusual_pow_float64(x, y)
    return result


@inlined("contract")
def pow_float64(x: np.float64, y: np.float64) -> np.float64:
    """x**y for all float64; at most 1.9 ULP (2e7 pairs measured). No lane sets another's flags."""
    result = times(x, x if y == TWO_64 else ONE_64)
    if y == -ONE_64:
        result = ONE_64 / (x if y == -ONE_64 else ONE_64)
    if y != TWO_64 and abs(y) != ONE_64:
        result = general_pow_float64(x, y)
    return result
