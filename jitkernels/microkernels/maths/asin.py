"""asin for float32 and float64, and the polynomial that acos shares.

Up to 1/2, asin(s) is s plus an odd polynomial; from there on it is pi/2 - 2 asin(s), s = sqrt((1 - |x|) / 2). Both take
the same polynomial of z = s**2 <= 1/4, so that one is computed, of the s and z that are selected. 1 - |x| is exact, and
s is off by half a unit of its last place; so no correction of the square root is needed. Where |x| > 1, it is NaN.

The polynomials come from a Remez exchange in 50-digit arithmetic for (asin(s) - s) / s**3, the error weighted relative
to asin(s); coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.strict_arithmetic import times

HALF = np.float32(0.5), np.float64(0.5)
HALF_PI = np.float32(1.5707964), np.float64(1.5707963267948966)
HALF_PI_REST = np.float32(-4.371139e-08), np.float64(6.123233995736766e-17)
A3_32, A5_32, A7_32, A9_32, A11_32 = coefficients(  # relative error of the whole arc sine: 2**-27.6
    np.float32, 0.16666752, 0.074953094, 0.04546915, 0.02418478, 0.0421583
)
A3_64, A5_64, A7_64, A9_64, A11_64, A13_64, A15_64, A17_64, A19_64, A21_64, A23_64, A25_64 = coefficients(  # 2**-55.9
    np.float64, 0.16666666666665408, 0.07500000000337151, 0.04464285682820713, 0.030381959142205338,
    0.022371757920361755, 0.01735970678130181, 0.013885215045340208, 0.012169348640697462, 0.006527370781795498,
    0.01952995130336811, -0.0162269476061853, 0.031914149990746696,
)  # fmt: skip


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


BEYOND = beyond_float32, beyond_float64


def _asin(form: FloatFormat, beyond: Any, one_half: Any, half_pi: Any, half_pi_rest: Any) -> Any:
    @inlined("contract")
    def asin(x: Any) -> Any:
        """Compute asin of x, NaN where |x| > 1.

        At most 1.70 ULP of float32 (all inputs measured), 1.75 ULP of float64 (2e7).
        """
        size = abs(x)
        is_outer = size > one_half
        z = (1 - size) * one_half if is_outer else x * x
        s = np.sqrt(z) if is_outer else size
        more = beyond(s, z)
        outer = half_pi - (2 * s + (2 * more - half_pi_rest))
        magnitude = outer if is_outer else s + more
        return np.copysign(magnitude, x)

    return asin


asin_float32, asin_float64 = for_both(_asin, BEYOND, HALF, HALF_PI, HALF_PI_REST)
