"""erfc for float32 and float64, down to the smallest subnormal number: a product of three factors.

For x >= 0, erfc(x) = exp(-x**2) * u * G(u) with u = 1 / (x + K): the last factor lies between 0.6 and 3, smooth up to
infinity, and has one polynomial, in t = S u - C around 0. For x < 0 it is 2 - erfc(-x). x is limited to
where erfc rounds to zero; NaN passes.

float32 is computed in float64, where nothing can go wrong, and rounded last.

In float64, each factor would bring its own rounding, and that of x**2 grows with x**2. So each is the sum of two
numbers, and the products of their heads, of 26 bits, are exact, fused or not (Dekker, Numer. Math. 18, 1971). Up to
3/4 it is 1 - erf(x), written as 1/2 - ((x - 1/2) + (erf(x) - x)) to keep its last bits; 0 gives exactly 1.

The polynomials come from a Remez exchange in 50-digit arithmetic, the error weighted relative to the result; that of
float64 from least squares in as many digits, because Remez needs powers that do not vanish inside of the interval.
Coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.maths.erf import beyond_float64
from jitkernels.maths.exact import times
from jitkernels.maths.exp import (
    C2_64,
    C3_64,
    C4_64,
    C5_64,
    C6_64,
    C7_64,
    C8_64,
    C9_64,
    C10_64,
    C11_64,
    EXPONENT_64,
    LN2_HIGH_64,
    LN2_LOW_64,
    LOG2E_64,
    MAGIC_64,
    ONE_64,
)
from jitkernels.native.source import inlined

ZERO_64, HALF_64, TWO_64 = np.float64(0), np.float64(0.5), np.float64(2)

HIGHEST_32 = np.float64(10.1)
LN2 = np.float64(0.6931471805599453)
MAGIC_32 = np.float64(1.5 * 2.0**52 + 1023)
K_32, S_32, C_32 = np.float64(3), np.float64(8), np.float64(1.6)
E2 = np.float64(0.4999999341364445)  # relative error of the exponential: 2**-28.3
E3 = np.float64(0.16666520125270995)
E4 = np.float64(0.04166839397845031)
E5 = np.float64(0.00836877817497721)
E6 = np.float64(0.0013814473191273277)
F0 = np.float64(1.2769783813458042)  # relative error of the last factor: 2**-28.9
F1 = np.float64(0.8705832004643944)
F2 = np.float64(0.45410130892065925)
F3 = np.float64(0.1756896380893493)
F4 = np.float64(0.04579333033103581)
F5 = np.float64(0.0053702200943940145)
F6 = np.float64(-0.001043197564489091)
F7 = np.float64(-0.0004519349379289999)
F8 = np.float64(1.0245762858082149e-05)
F9 = np.float64(2.447398863381364e-05)

HIGHEST = np.float64(27.3)
BORDER = np.float64(0.75)
BITS_26 = np.int64(-(2**27))  # mask of the sign, the exponent and the first 26 bits
K, S, C = np.float64(2), np.float64(4), np.float64(0.8125)
G0 = np.float64(0.902300089502597)  # relative error of the last factor: 2**-56.5
G0_REST = np.float64(4.6274312353804825e-17)
G1 = np.float64(0.5867253014594347)
G2 = np.float64(0.2549154639391564)
G3 = np.float64(0.049934487409584255)
G4 = np.float64(-0.014054759271715773)
G5 = np.float64(-0.009107499828847539)
G6 = np.float64(0.0013980381020022089)
G7 = np.float64(0.001665371541971551)
G8 = np.float64(-0.00035737264277264246)
G9 = np.float64(-0.00032602084773236954)
G10 = np.float64(0.00013596449612628022)
G11 = np.float64(5.357733295493964e-05)
G12 = np.float64(-4.975297773102978e-05)
G13 = np.float64(-2.64365741859944e-07)
G14 = np.float64(1.4721184679168649e-05)
G15 = np.float64(-5.441028420450795e-06)
G16 = np.float64(-2.6555311081540202e-06)
G17 = np.float64(3.028754106085591e-06)
G18 = np.float64(-1.464589727473995e-07)
G19 = np.float64(-1.008827913464252e-06)
G20 = np.float64(1.8705759112501876e-07)
G21 = np.float64(1.900511229515478e-07)


@inlined("contract")
def erfc_float32(x: np.float32) -> np.float32:
    """erfc(x) for every float32, infinities and NaN included; at most 0.60 ULP (all inputs measured)."""
    y = min(abs(np.float64(x)), HIGHEST_32)
    square = y * y
    shifted = MAGIC_32 - square * LOG2E_64
    r = (MAGIC_32 - shifted) * LN2 - square
    p = (E6 * r + E5) * (r * r) + (E4 * r + E3)
    p = (p * r + E2) * (r * r) + (r + ONE_64)
    scale = (shifted.view(np.int64) << 52).view(np.float64)
    u = ONE_64 / (y + K_32)
    t = S_32 * u - C_32
    power = t * t
    g = (F9 * t + F8) * power + (F7 * t + F6)
    g = (g * power + (F5 * t + F4)) * power + (F3 * t + F2)
    g = g * power + (F1 * t + F0)
    found = (p * scale) * (u * g)
    return np.float32(TWO_64 - found if x < 0 else found)


@inlined("contract")
def head(x: np.float64) -> np.float64:
    """The first 26 bits of a number."""
    return (x.view(np.int64) & BITS_26).view(np.float64)


@inlined("contract")
def last_factor(u: np.float64, u_rest: np.float64) -> tuple[np.float64, np.float64]:
    """G and what it lacks, for 1/30 <= u <= 4/11."""
    t = S * u - C
    square = t * t
    p = (G21 * t + G20) * square + (G19 * t + G18)
    p = (p * square + (G17 * t + G16)) * square + (G15 * t + G14)
    p = (p * square + (G13 * t + G12)) * square + (G11 * t + G10)
    p = (p * square + (G9 * t + G8)) * square + (G7 * t + G6)
    p = (p * square + (G5 * t + G4)) * square + (G3 * t + G2)
    p = p * t + G1
    g = p * t + G0
    slope = (G2 + G2) * t + G1
    return g, (G0 - g) + p * t + (slope * (S * u_rest) + G0_REST)


@inlined("contract")
def inverse(y: np.float64) -> tuple[np.float64, np.float64]:
    """1 / (K + y) and what it lacks, for y >= 0."""
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
    shifted = MAGIC_64 - square * LOG2E_64
    k = MAGIC_64 - shifted
    near = k * LN2_HIGH_64 - square
    behind = k * LN2_LOW_64 - times(y - y_head, y + y_head)
    r = near + behind
    power = r * r
    p = ((C11_64 * r + C10_64) * power + (C9_64 * r + C8_64)) * power + (C7_64 * r + C6_64)
    p = (p * power + (C5_64 * r + C4_64)) * power + (C3_64 * r + C2_64)
    e = ONE_64 + r
    e_rest = ((ONE_64 - e) + r) + (p * power + ((near - r) + behind))
    u, u_rest = inverse(y)
    g, g_rest = last_factor(u, u_rest)
    # The product of the first two, again in two parts, then that of all.
    e_head, u_head = head(e), head(u)
    product = e_head * u_head
    product_rest = e_head * (u - u_head + u_rest) + times(e - e_head + e_rest, u)
    first, g_head = head(product), head(g)
    found_rest = first * (g - g_head + g_rest) + times(product - first + product_rest, g)
    found = first * g_head + found_rest
    bits = shifted.view(np.int64)
    floor_half = bits << 51 & EXPONENT_64
    ceil_half = (bits << 52) - floor_half
    found = found * floor_half.view(np.float64) * ceil_half.view(np.float64)
    small = HALF_64 - ((x - HALF_64) + beyond_float64(x))
    return small if size < BORDER else (TWO_64 - found if x < ZERO_64 else found)
