"""atan for float32 and float64, and the polynomial that atan2 shares.

atan(q) = pi/2 - atan(1/q) beyond 1; between 0 and 1 one odd polynomial. It is longer than what a second reduction, to
tan(pi/8), would leave, but takes no longer than the reduction, and q comes with one rounding less.

The polynomials come from a Remez exchange in 50-digit arithmetic for (atan(q) - q) / q**3, the error weighted relative
to atan(q); coefficients were rounded to the type one by one, lowest power first, and the rest fitted again. Two of
float32 are one unit larger than that, with which 1 has exactly the angle pi/4, as it has in float64.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.asin import HALF_PI, HALF_PI_REST
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.strict_arithmetic import times

A_32 = coefficients(  # of q**3, q**5, ...; relative error of the whole arc tangent: 2**-28.5
    np.float32, -0.333333, 0.1999853, -0.14264016, 0.10950881, -0.08399314, 0.057881664, -0.031097453, 0.010869073,
    -0.001782945,
)  # fmt: skip
A_64 = coefficients(  # 2**-55.0
    np.float64, -0.3333333333333186, 0.19999999999755183, -0.14285714271341404, 0.11111110678893835,
    -0.09090901237384108, 0.07692212949059292, -0.06665860485941028, 0.058773083715545196, -0.05239235213681286,
    0.046739558410487894, -0.040926517572801344, 0.03406803810669445, -0.025827090746994626, 0.016978326254476973,
    -0.009184774070335947, 0.0038560900943850986, -0.0011641139901020971, 0.00022303186741837766,
    -2.0259531611915483e-05,
)  # fmt: skip


@inlined("contract")
def beyond_float32(q: np.float32) -> np.float32:
    """atan(q) - q for 0 <= q <= 1."""
    z = q * q
    square = z * z
    p = (A_32[8] * square + (A_32[7] * z + A_32[6])) * square + (A_32[5] * z + A_32[4])
    p = (p * square + (A_32[3] * z + A_32[2])) * square + (A_32[1] * z + A_32[0])
    result: np.float32 = times(p, z * q)
    return result


@inlined("contract")
def beyond_float64(q: np.float64) -> np.float64:
    """atan(q) - q for 0 <= q <= 1."""
    z = q * q
    square = z * z
    p = (A_64[18] * square + (A_64[17] * z + A_64[16])) * square + (A_64[15] * z + A_64[14])
    p = (p * square + (A_64[13] * z + A_64[12])) * square + (A_64[11] * z + A_64[10])
    p = (p * square + (A_64[9] * z + A_64[8])) * square + (A_64[7] * z + A_64[6])
    p = (p * square + (A_64[5] * z + A_64[4])) * square + (A_64[3] * z + A_64[2])
    p = p * square + (A_64[1] * z + A_64[0])
    result: np.float64 = times(p, z * q)
    return result


BEYOND = beyond_float32, beyond_float64


def _atan(form: FloatFormat, beyond: Any, one: Any, half_pi: Any, half_pi_rest: Any) -> Any:
    @inlined("contract")
    def atan(x: Any) -> Any:
        """Compute atan of x; at most 1.30 ULP of float32 (all inputs measured), 1.50 ULP of float64 (2e7 inputs)."""
        size = abs(x)
        is_outer = size > one
        q = (one if is_outer else size) / (size if is_outer else one)
        more = beyond(q)
        magnitude = half_pi - (q + (more - half_pi_rest)) if is_outer else q + more
        return np.copysign(magnitude, x)

    return atan


atan_float32, atan_float64 = for_both(_atan, BEYOND, ONE, HALF_PI, HALF_PI_REST)
