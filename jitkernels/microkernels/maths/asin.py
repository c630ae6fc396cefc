"""asin for float32 and float64, and the polynomial that acos shares.

Up to 1/2, asin(s) is s plus an odd polynomial; from there on it is pi/2 - 2 asin(s), s = sqrt((1 - |x|) / 2). Both take
the same polynomial of z = s**2 <= 1/4, so that one is computed, of the s and z that are selected. 1 - |x| is exact, and
s is off by half a unit of its last place; so no correction of the square root is needed. Where |x| > 1, it is NaN.

The polynomials come from a Remez exchange in 50-digit arithmetic for (asin(s) - s) / s**3, the error weighted relative
to asin(s); coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.strict_arithmetic import times

ONE_32, HALF_32, TWO_32 = np.float32(1), np.float32(0.5), np.float32(2)
HALF_PI_32 = np.float32(1.5707964)
HALF_PI_REST_32 = np.float32(-4.371139e-08)
A3_32 = np.float32(0.16666752)  # relative error of the whole arc sine: 2**-27.6
A5_32 = np.float32(0.074953094)
A7_32 = np.float32(0.04546915)
A9_32 = np.float32(0.02418478)
A11_32 = np.float32(0.0421583)

ONE_64, HALF_64, TWO_64 = np.float64(1), np.float64(0.5), np.float64(2)
HALF_PI_64 = np.float64(1.5707963267948966)
HALF_PI_REST_64 = np.float64(6.123233995736766e-17)
A3_64 = np.float64(0.16666666666665408)  # relative error of the whole arc sine: 2**-55.9
A5_64 = np.float64(0.07500000000337151)
A7_64 = np.float64(0.04464285682820713)
A9_64 = np.float64(0.030381959142205338)
A11_64 = np.float64(0.022371757920361755)
A13_64 = np.float64(0.01735970678130181)
A15_64 = np.float64(0.013885215045340208)
A17_64 = np.float64(0.012169348640697462)
A19_64 = np.float64(0.006527370781795498)
A21_64 = np.float64(0.01952995130336811)
A23_64 = np.float64(-0.0162269476061853)
A25_64 = np.float64(0.031914149990746696)


@inlined("contract")
def beyond_float32(s: np.float32, z: np.float32) -> np.float32:
    """asin(s) - s, where z = s**2 <= 1/4."""
    square = z * z
    p = (A11_32 * square + (A9_32 * z + A7_32)) * square + (A5_32 * z + A3_32)
    return times(p, z * s)


@inlined("contract")
def beyond_float64(s: np.float64, z: np.float64) -> np.float64:
    """asin(s) - s, where z = s**2 <= 1/4."""
    square = z * z
    p = (A25_64 * z + A23_64) * square + (A21_64 * z + A19_64)
    p = (p * square + (A17_64 * z + A15_64)) * square + (A13_64 * z + A11_64)
    p = (p * square + (A9_64 * z + A7_64)) * square + (A5_64 * z + A3_64)
    return times(p, z * s)


@inlined("contract")
def asin_float32(x: np.float32) -> np.float32:
    """asin(x) for every float32; NaN for NaN and where |x| > 1; at most 1.70 ULP (all inputs measured)."""
    size = abs(x)
    is_outer = size > HALF_32
    z = (ONE_32 - size) * HALF_32 if is_outer else x * x
    s = np.sqrt(z) if is_outer else size
    beyond = beyond_float32(s, z)
    outer = HALF_PI_32 - (TWO_32 * s + (TWO_32 * beyond - HALF_PI_REST_32))
    magnitude = outer if is_outer else s + beyond
    result: np.float32 = np.copysign(magnitude, x)
    return result


@inlined("contract")
def asin_float64(x: np.float64) -> np.float64:
    """asin(x) for every float64; NaN for NaN and where |x| > 1; at most 1.75 ULP (2e7 inputs measured)."""
    size = abs(x)
    is_outer = size > HALF_64
    z = (ONE_64 - size) * HALF_64 if is_outer else x * x
    s = np.sqrt(z) if is_outer else size
    beyond = beyond_float64(s, z)
    outer = HALF_PI_64 - (TWO_64 * s + (TWO_64 * beyond - HALF_PI_REST_64))
    magnitude = outer if is_outer else s + beyond
    result: np.float64 = np.copysign(magnitude, x)
    return result
