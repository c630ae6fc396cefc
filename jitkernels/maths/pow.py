"""x**y for float32 and float64: exp2(y * log2(x)) with a logarithm of more digits than the result has.

An error of log2(x) counts y times, which may be 2**7 or 2**10 in the result. So log2(x) is the sum of two numbers, as
in fdlibm's e_pow.c: s = f / (2 + f) is rounded to few bits and what that leaves out is kept, so that products of the
high parts are exact, with or without fused multiply-adds; so are the first terms of the series. y is cut likewise.

What is no power of a normal positive number, or is none itself, has a path of its own behind one test of all lanes: for
float32 in float64, for float64 with 2**k applied as two factors. The special values are those of C's `pow`.
"""

import numpy as np

from jitkernels.maths.exact import times
from jitkernels.maths.exp import EXPONENT_64, MAGIC_64, ONE_32, ONE_64
from jitkernels.maths.exp2 import (
    C1_32,
    C1_64,
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
)
from jitkernels.maths.log import (
    HALF_32,
    HALF_64,
    INFINITY_32,
    INFINITY_64,
    TWO_64,
    UP_32,
    UP_64,
    UP_STEPS_32,
    UP_STEPS_64,
    ZERO_32,
    ZERO_64,
    extended_float64,
    parts_float32,
    parts_float64,
    unusual_float32,
    unusual_float64,
)
from jitkernels.native.source import inlined, seldom

# log2((1 + s) / (1 - s)) / s, of s**2: relative error 2**-37.8
L0_32 = np.float64(2.88539008179008)
L1_32 = np.float64(0.9617966733501693)
L2_32 = np.float64(0.5770835832594695)
L3_32 = np.float64(0.41167282712503117)
L4_32 = np.float64(0.3407280081541227)
# 2**r: relative error 2**-29
E0_32 = np.float64(1.000000000553975)
E1_32 = np.float64(0.6931472057363737)
E2_32 = np.float64(0.24022646891088636)
E3_32 = np.float64(0.05550328777885616)
E4_32 = np.float64(0.009618488927044274)
E5_32 = np.float64(0.001339993106994021)
E6_32 = np.float64(0.00015345818488912626)
LOWEST_32 = np.float64(-160)
HIGHEST_32 = np.float64(140)
MOST_32 = np.float32(125)  # for which 2**t is a normal number
MAGIC_32 = np.float64(1.5 * 2.0**52)  # whose sum has an integer in its low bits
ROUNDING_32 = np.float32(1.5 * 2.0**23)
HIGH_BITS_32 = np.int32(-(2**12))
# 2 * log2(e), and its high and low part
FACTOR_32 = np.float32(2.88539)
FACTOR_HIGH_32 = np.float32(2.884765625)
FACTOR_LOW_32 = np.float32(0.0006244568)
# (log2((1 + s) / (1 - s)) / s - 2 * log2(e)) / s**2, of s**2: relative error of the sum 2**-36.4
S3_32 = np.float32(0.9617967)
S5_32 = np.float32(0.5770788)
S7_32 = np.float32(0.41192728)
S9_32 = np.float32(0.33648953)
THREE_32 = np.float32(3)
TWO_32 = np.float32(2)
SMALLEST_32 = np.float32(2.0**-126)

HIGH_BITS_64 = np.int64(-(2**32))
FEW_BITS_64 = np.int64(-(2**42))
THREE_64 = np.float64(3)
# (log2((1 + s) / (1 - s)) * 3 / (2 * log2(e)) / s - 3 - s**2) / s**4, of s**2: relative error of the sum 2**-66.3
R0_64 = np.float64(0.6000000000000338)
R2_64 = np.float64(0.4285714285514936)
R4_64 = np.float64(0.3333333377988912)
R6_64 = np.float64(0.27272676550008595)
R8_64 = np.float64(0.23080136037059978)
R10_64 = np.float64(0.19885225502834672)
R12_64 = np.float64(0.19794504956130834)
FACTOR_64 = np.float64(0.9617966939259756)  # 2 * log2(e) / 3, and its high and low part
FACTOR_HIGH_64 = np.float64(0.9617962837219238)
FACTOR_LOW_64 = np.float64(4.102040517767816e-07)
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
    p = (((L4_32 * square + L3_32) * square + L2_32) * square + L1_32) * square + L0_32
    return s * p + np.float64(k)


@inlined("contract")
def raised_float32(t: np.float64) -> np.float32:
    """2**t for numbers of less than 1000."""
    shifted = t + MAGIC_32
    r = t - (shifted - MAGIC_32)
    p = (((((E6_32 * r + E5_32) * r + E4_32) * r + E3_32) * r + E2_32) * r + E1_32) * r + E0_32
    return np.float32((p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64))


@inlined("contract")
def signed_float32(x: np.float32, y: np.float32, power: np.float32) -> np.float32:
    """x**y, of which that of abs(x) is given."""
    size = abs(x)
    power = ONE_32 if y == ZERO_32 or x == ONE_32 or (size == ONE_32 and abs(y) == INFINITY_32) else power
    is_whole = np.floor(y) == y
    half = y * HALF_32
    is_odd = is_whole and np.floor(half) != half
    is_negative = x.view(np.int32) < 0
    is_failing = is_negative and not is_whole and size > ZERO_32 and size < INFINITY_32
    power = (
        np.sqrt(x if is_failing else size) if is_failing else power
    )  # which sets the flag that belongs to NaN
    return -power if is_negative and is_odd else power


@inlined()
def high_float32(x: np.float32) -> np.float32:
    """The first 12 bits of a number: products of two such are exact."""
    return (x.view(np.int32) & HIGH_BITS_32).view(np.float32)


@inlined("contract")
def parted_float32(k: np.float32, f: np.float32) -> tuple[np.float32, np.float32]:
    """k + log2(1 + f), to 30 bits: a number of 12 bits, and the rest."""
    inverse = ONE_32 / (TWO_32 + f)
    s = f * inverse
    s_high, f_high = high_float32(s), high_float32(f)
    s_low = inverse * (((f - TWO_32 * s_high) - s_high * f_high) - s_high * (f - f_high))
    square = s * s
    series = ((S9_32 * square + S7_32) * square + S5_32) * square + S3_32
    low = (times(s_low, FACTOR_32) + s_high * FACTOR_LOW_32) + s_high * ((s_high * s_high) * series)
    low = low + times(THREE_32 * s_low, s * s_high) * series  # what s**3 is more than s_high**3
    start = s_high * FACTOR_HIGH_32
    whole = k + start
    low = ((k - whole) + start) + low
    high = high_float32(whole + low)
    return high, low - (high - whole)


@seldom("contract")
def unusual_pow_float32(x: np.float32, y: np.float32) -> np.float32:
    """x**y for all float32, in float64."""
    size = abs(x)
    is_small = size < SMALLEST_32
    k, f = parts_float32(size * UP_32 if is_small else size)
    log = logarithm_float32(k - UP_STEPS_32 if is_small else k, f)
    wide = np.float64(y) * extended_float64(np.float64(size), log, -INFINITY_64)
    return signed_float32(x, y, raised_float32(min(max(wide, LOWEST_32), HIGHEST_32)))


@inlined("contract")
def pow_float32(x: np.float32, y: np.float32) -> np.float32:
    """x**y for all float32; at most 3.0 ULP (1e8 pairs measured)."""
    k, f = parts_float32(x)
    high, low = parted_float32(k, f)
    y_high = high_float32(y)
    t = y_high * high
    shifted = t + ROUNDING_32
    r = (t - (shifted - ROUNDING_32)) + (times(y - y_high, high) + y * low)
    p = (((((C6_32 * r + C5_32) * r + C4_32) * r + C3_32) * r + C2_32) * r + C1_32) * r + ONE_32
    result = (p.view(np.int32) + (shifted.view(np.int32) << 23)).view(np.float32)
    if unusual_float32(x) or not abs(t) < MOST_32:
        result = unusual_pow_float32(x, y)
    return result


@inlined("contract")
def logarithm_float64(k: np.float64, f: np.float64) -> tuple[np.float64, np.float64]:
    """k + log2(1 + f), to 62 bits: a number of 21 bits, and the rest."""
    denominator = f + TWO_64
    inverse = ONE_64 / denominator
    s = f * inverse
    s_high = high_float64(s)
    denominator_high = high_float64(denominator)
    denominator_low = f - (denominator_high - TWO_64)
    s_low = inverse * ((f - s_high * denominator_high) - s_high * denominator_low)
    square = s * s
    fourth = square * square
    even = (R12_64 * fourth + R8_64) * fourth + R4_64
    odd = (R10_64 * fourth + R6_64) * fourth + R2_64
    rest = ((even * square + odd) * square + R0_64) * fourth + s_low * (s_high + s)
    square_high = s_high * s_high
    series_high = (((THREE_64 + square_high) + rest).view(np.int64) & FEW_BITS_64).view(np.float64)
    series_low = rest - ((series_high - THREE_64) - square_high)
    product = s_high * series_high
    product_low = times(series_low, s) + s_low * series_high
    scaled = FACTOR_HIGH_64 * product
    scaled_low = times(FACTOR_LOW_64, product) + product_low * FACTOR_64
    high = high_float64((scaled + scaled_low) + k)
    return high, scaled_low - ((high - k) - scaled)


@inlined()
def high_float64(x: np.float64) -> np.float64:
    """The first 21 bits of a number: products of two such are exact."""
    return (x.view(np.int64) & HIGH_BITS_64).view(np.float64)


@inlined("contract")
def times_float64(y: np.float64, high: np.float64, low: np.float64) -> tuple[np.float64, np.float64]:
    """y * (high + low), as the sum of two."""
    y_high = high_float64(y)
    return y_high * high, times(y, low) + (y - y_high) * high


@inlined("contract")
def fraction_float64(r: np.float64) -> np.float64:
    """2**r for -0.5 <= r <= 0.5."""
    square = r * r
    p = ((C11_64 * r + C10_64) * square + (C9_64 * r + C8_64)) * square + (C7_64 * r + C6_64)
    p = (p * square + (C5_64 * r + C4_64)) * square + (C3_64 * r + C2_64)
    return (p * r + C1_64) * r + ONE_64


@inlined("contract")
def signed_float64(x: np.float64, y: np.float64, power: np.float64) -> np.float64:
    """x**y, of which that of abs(x) is given."""
    size = abs(x)
    power = ONE_64 if y == ZERO_64 or x == ONE_64 or (size == ONE_64 and abs(y) == INFINITY_64) else power
    is_whole = np.floor(y) == y
    half = y * HALF_64
    is_odd = is_whole and np.floor(half) != half
    is_negative = x.view(np.int64) < 0
    is_failing = is_negative and not is_whole and size > ZERO_64 and size < INFINITY_64
    power = (
        np.sqrt(x if is_failing else size) if is_failing else power
    )  # which sets the flag that belongs to NaN
    return -power if is_negative and is_odd else power


@seldom("contract")
def unusual_pow_float64(x: np.float64, y: np.float64) -> np.float64:
    """x**y for all float64, 2**k applied as two factors."""
    size = abs(x)
    is_small = size < SMALLEST_64
    k, f = parts_float64(size * UP_64 if is_small else size)
    high, low = logarithm_float64(k - UP_STEPS_64 if is_small else k, f)
    plain = y * extended_float64(size, high + low, -INFINITY_64)
    t, t_low = times_float64(y, high, low) if abs(plain) < -LOWEST_64 else (plain, ZERO_64)
    t = min(max(t, LOWEST_64), HIGHEST_64)
    shifted = t + MAGIC_64
    p = fraction_float64((t - (shifted - MAGIC_64)) + t_low)
    bits = shifted.view(np.int64)
    floor_half = bits << 51 & EXPONENT_64
    ceil_half = (bits << 52) - floor_half
    return signed_float64(x, y, p * floor_half.view(np.float64) * ceil_half.view(np.float64))


@inlined("contract")
def pow_float64(x: np.float64, y: np.float64) -> np.float64:
    """x**y for all float64; at most 3.8 ULP (3e7 pairs measured)."""
    k, f = parts_float64(x)
    high, low = logarithm_float64(k, f)
    t, t_low = times_float64(y, high, low)
    shifted = t + MAGIC_32
    p = fraction_float64((t - (shifted - MAGIC_32)) + t_low)
    result = (p.view(np.int64) + (shifted.view(np.int64) << 52)).view(np.float64)
    if unusual_float64(x) or not abs(t) < MOST_64:
        result = unusual_pow_float64(x, y)
    return result
