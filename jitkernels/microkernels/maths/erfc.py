"""erfc for float32 and float64, down to the smallest subnormal number: a product of three factors.

For x >= 0, erfc(x) = exp(-x**2) * u * G(u) with u = 1 / (x + K): the last factor lies between 0.6 and 3, smooth up to
infinity, and has one polynomial, in t = S u - C around 0. For x < 0 it is 2 - erfc(-x). x is limited to
where erfc rounds to zero; NaN passes.

In float32 the last two factors are one, exp(x**2) * erfc(x), for which each of 16 intervals has a polynomial of its
own, whose coefficients one instruction takes out of a register. The exponential is 1 + more, the polynomial c0 + rest,
and the product c0 plus what is smaller, so that the last sum alone rounds to the digits of the result.

In float64, each factor would bring its own rounding, and that of x**2 grows with x**2. So each is the sum of two
numbers, and the products of their heads, of 26 bits, are exact, fused or not (Dekker, Numer. Math. 18, 1971). Up to
3/4 it is 1 - erf(x), written as 1/2 - ((x - 1/2) + (erf(x) - x)) to keep its last bits; 0 gives exactly 1.

The polynomials come from a Remez exchange in 50-digit arithmetic, the error weighted relative to the result; that of
float64 from least squares in as many digits, because Remez needs powers that do not vanish inside of the interval.
Coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.codegen.source_protocol import Table, inlined
from jitkernels.microkernels.maths.erf import beyond_float64
from jitkernels.microkernels.maths.exp import (
    C_32,
    LN2_HIGH,
    LN2_LOW,
    LOG2E,
    MAGIC,
    exp_terms_float64,
    times_power_float64,
)
from jitkernels.microkernels.maths.formats import coefficients
from jitkernels.microkernels.maths.strict_arithmetic import times, times_plus_float32

ONE_64, ZERO_64, HALF_64, TWO_64 = np.float64(1), np.float64(0), np.float64(0.5), np.float64(2)

HIGHEST_32 = np.float32(10.1)
TWO_32, SHIFT_32 = np.float32(2), np.float32(0.75)
PLAIN_32 = np.float32(9)  # up to this argument results are normal numbers
ROUNDING_32 = np.float32(1.5 * 2.0**23)
UP_BITS_32, DOWN_32 = np.int32((127 + 64) << 23), np.float32(2.0**-64)
PLACES_32 = 21  # bits of y + 3/4 behind those that select its interval
INTERVAL_32 = np.int32(-(2**21))
MIDDLE_32 = np.int32(2**20)
ROWS_32 = Table(
    tuple(tuple(np.float32(number) for number in row) for row in (
        (0.32158542, -0.16362293, 0.07615101, -0.032928873, 0.013377511, -0.005216058, 0.001902476),
        (0.25539568, -0.106796466, 0.041801535, -0.015459978, 0.005491732, -0.0018533998, 6.062457e-05),
        (0.21080637, -0.07434735, 0.024936406, -0.0080013, 0.0025334493, -0.0007428209, -0.00048250332),
        (0.17900115, -0.054372262, 0.015884006, -0.0044791927, 0.0012380204, -0.00032929235, -7.045476e-05),
        (0.14558972, -0.036456257, 0.008878583, -0.0021071841, 0.0004897733, -0.00011223582, 2.114939e-05),
        (0.11630271, -0.023503449, 0.004661382, -0.0009080809, 0.00017340547, -3.3095865e-05, 7.38244e-06),
        (0.096698776, -0.016343217, 0.0027254284, -0.00044861773, 7.135129e-05, -1.1668734e-05, 5.882891e-06),
        (0.08269506, -0.011995901, 0.0017225408, -0.00024496732, 3.644675e-05, -4.960246e-06, -4.3588743e-06),
        (0.06789492, -0.008112989, 0.00096275075, -0.00011346783, 1.3304937e-05, -1.5745926e-06, 1.712515e-07),
        (0.05478459, -0.0052951346, 0.00050943, -4.8793365e-05, 4.7262383e-06, -4.4744684e-07, -6.7295893e-09),
        (0.93320626, -1.0117284, 0.86992216, -0.63818985, 0.4489288, -0.25985023, -5.5018997),
        (0.8191813, -0.8211862, 0.6651423, -0.46427083, 0.3335163, -0.1767465, -7.3433557),
        (0.68585724, -0.61398625, 0.45560876, -0.295415, 0.17301883, -0.09300889, 0.020914562),
        (0.5568139, -0.43236184, 0.28657153, -0.16881633, 0.093194745, -0.046010725, -0.08852582),
        (0.46431157, -0.3158339, 0.18797159, -0.10091787, 0.04739558, -0.022625765, 0.11103197),
        (0.39569807, -0.23805848, 0.1278922, -0.06279948, 0.026983475, -0.011839438, 0.072618),
    ))
)  # fmt: skip
"""Of 16 intervals of y, four for each power of two of y + 3/4, polynomials of exp(y**2) * erfc(y): error 2**-24.9."""

HIGHEST = np.float64(27.3)
BORDER = np.float64(0.75)
BITS_26 = np.int64(-(2**27))  # mask of the sign, the exponent and the first 26 bits
K, S, C = np.float64(2), np.float64(4), np.float64(0.8125)
G0_REST = np.float64(4.6274312353804825e-17)
G = coefficients(  # relative error of the last factor: 2**-56.5
    np.float64, 0.902300089502597, 0.5867253014594347, 0.2549154639391564, 0.049934487409584255, -0.014054759271715773,
    -0.009107499828847539, 0.0013980381020022089, 0.001665371541971551, -0.00035737264277264246,
    -0.00032602084773236954, 0.00013596449612628022, 5.357733295493964e-05, -4.975297773102978e-05,
    -2.64365741859944e-07, 1.4721184679168649e-05, -5.441028420450795e-06, -2.6555311081540202e-06,
    3.028754106085591e-06, -1.464589727473995e-07, -1.008827913464252e-06, 1.8705759112501876e-07,
    1.900511229515478e-07,
)  # fmt: skip


@inlined("contract")
def erfc_float32(x: np.float32) -> np.float32:
    """erfc(x) for every float32, infinities and NaN included; at most 1.95 ULP (all inputs measured)."""
    y = min(abs(x), HIGHEST_32)
    square = times(y, y)
    shifted = ROUNDING_32 - square * LOG2E[0]
    k = ROUNDING_32 - shifted
    r = (k * LN2_HIGH[0] - square) + (k * LN2_LOW[0] - times_plus_float32(y, y, -square))
    e = (((C_32[6] * r + C_32[5]) * r + C_32[4]) * r + C_32[3]) * r + C_32[2]
    more = (e * r) * r + r
    bits = (y + SHIFT_32).view(np.int32)
    t = y - ((bits & INTERVAL_32 | MIDDLE_32).view(np.float32) - SHIFT_32)
    c0, c1, c2, c3, c4, c5, c6 = ROWS_32[np.int64(bits >> PLACES_32)]
    rest = times((((((c6 * t + c5) * t + c4) * t + c3) * t + c2) * t + c1), t)
    value = c0 + (c0 * more + (rest * more + rest))
    power = shifted.view(np.int32) << 23
    product = (value.view(np.int32) + power).view(np.float32)
    if not y <= PLAIN_32:  # includes NaN, whose exponent bits select no interval
        product = value * (power + UP_BITS_32).view(np.float32) * DOWN_32
    result: np.float32 = TWO_32 - product if x < 0 else product
    return result


@inlined("contract")
def head(x: np.float64) -> np.float64:
    """The first 26 bits of a number."""
    return (x.view(np.int64) & BITS_26).view(np.float64)


@inlined("contract")
def last_factor(u: np.float64, u_rest: np.float64) -> tuple[np.float64, np.float64]:
    """G and its rounding error, for 1/30 <= u <= 4/11."""
    t = S * u - C
    square = t * t
    p = (G[21] * t + G[20]) * square + (G[19] * t + G[18])
    p = (p * square + (G[17] * t + G[16])) * square + (G[15] * t + G[14])
    p = (p * square + (G[13] * t + G[12])) * square + (G[11] * t + G[10])
    p = (p * square + (G[9] * t + G[8])) * square + (G[7] * t + G[6])
    p = (p * square + (G[5] * t + G[4])) * square + (G[3] * t + G[2])
    p = p * t + G[1]
    g = p * t + G[0]
    slope = (G[2] + G[2]) * t + G[1]
    return g, (G[0] - g) + p * t + (slope * (S * u_rest) + G0_REST)


@inlined("contract")
def inverse(y: np.float64) -> tuple[np.float64, np.float64]:
    """1 / (K + y) and its rounding error, for y >= 0."""
    total = y + K
    lost = y - (total - K)
    u = ONE_64 / total
    total_head, u_head = head(total), head(u)
    missing = (ONE_64 - u_head * total_head) - u_head * (total - total_head) - (u - u_head) * total
    return u, u * (missing - u * lost)


@inlined("contract")
def erfc_float64(x: np.float64) -> np.float64:
    """erfc(x) for every float64, infinities and NaN included; at most 1.70 ULP (2e7 inputs measured)."""
    size = abs(x)
    y = min(size, HIGHEST)
    # exp(-y * y) = 2**k * (e + e_rest), as in `exp`.
    y_head = head(y)
    square = y_head * y_head
    shifted = MAGIC[1] - square * LOG2E[1]
    k = MAGIC[1] - shifted
    near = k * LN2_HIGH[1] - square
    behind = k * LN2_LOW[1] - times(y - y_head, y + y_head)
    r = near + behind
    power = r * r
    p = exp_terms_float64(r, power)
    e = ONE_64 + r
    e_rest = ((ONE_64 - e) + r) + (p * power + ((near - r) + behind))
    u, u_rest = inverse(y)
    g, g_rest = last_factor(u, u_rest)
    # The product of the first two, again as a sum of two numbers, then the product of all.
    e_head, u_head = head(e), head(u)
    product = e_head * u_head
    product_rest = e_head * (u - u_head + u_rest) + times(e - e_head + e_rest, u)
    first, g_head = head(product), head(g)
    result_rest = first * (g - g_head + g_rest) + times(product - first + product_rest, g)
    result = first * g_head + result_rest
    result = times_power_float64(result, shifted)
    small = HALF_64 - ((x - HALF_64) + beyond_float64(x))
    return small if size < BORDER else (TWO_64 - result if x < ZERO_64 else result)
