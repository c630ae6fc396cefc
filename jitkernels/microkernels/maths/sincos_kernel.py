"""Sine and cosine kernels for at most pi/4, which sin, cos and tan share.

Odd and even polynomials from a Remez exchange in 50-digit arithmetic, the error weighted relative to the result;
coefficients were rounded to the type one by one, lowest power first, and the rest fitted again. The first terms, r and
1 - r**2/2, are added last, together with their corrections: the `rest` of r and the rounding error of 1 - r**2/2. So
the error is hardly more than the last rounding.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.strict_arithmetic import times

HALF = np.float32(0.5), np.float64(0.5)
# Relative error of the whole sine: 2**-27.9 and 2**-57.9; of the whole cosine: 2**-33.0 and 2**-63.9.
S_32 = coefficients(np.float32, -0.16666655, 0.008332189, -0.00019518292)
C_32 = coefficients(np.float32, 0.041666646, -0.001388731, 2.4432327e-05)
S_64 = coefficients(
    np.float64, -0.1666666666666663, 0.00833333333332184, -0.00019841269829358503, 2.7557313538494155e-06,
    -2.5050734384315546e-08, 1.5895432908425193e-10,
)  # fmt: skip
C_64 = coefficients(
    np.float64, 0.041666666666666595, -0.0013888888888873342, 2.4801587289002062e-05, -2.75573142170262e-07,
    2.0875705393065836e-09, -1.1358749019056813e-11,
)  # fmt: skip


def _six_terms(c: tuple[Any, ...]) -> Any:
    @inlined("contract")
    def terms(z: np.float64) -> np.float64:
        """c[0] + c[1] z + c[2] z**2 + ..."""
        square = z * z
        value: np.float64 = ((c[5] * z + c[4]) * square + (c[3] * z + c[2])) * square + (c[1] * z + c[0])
        return value

    return terms


sine_terms_float64, cosine_terms_float64 = _six_terms(S_64), _six_terms(C_64)


@inlined("contract")
def sine_float32(r: np.float32, rest: np.float32) -> np.float32:
    """sin(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    p = (S_32[2] * z + S_32[1]) * z + S_32[0]
    result: np.float32 = r + (p * (z * r) + rest)
    return result


@inlined("contract")
def sine_float64(r: np.float64, rest: np.float64) -> np.float64:
    """sin(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    p = sine_terms_float64(z)
    result: np.float64 = r + (p * (z * r) + (rest - HALF[1] * z * rest))
    return result


@inlined("contract")
def cosine_terms_float32(z: np.float32) -> np.float32:
    """(cos(r) - 1 + z / 2) / z**2 for z = r**2."""
    value: np.float32 = (C_32[2] * z + C_32[1]) * z + C_32[0]
    return value


def _cosine(form: FloatFormat, terms: Any, one_half: Any, one: Any) -> Any:
    @inlined("contract")
    def cosine(r: Any, rest: Any) -> Any:
        """cos(r + rest) for -pi/4 <= r <= pi/4."""
        z = r * r
        p = terms(z)
        half = one_half * z
        most = one - half
        return most + (((one - most) - half) + (p * (z * z) - times(r, rest)))

    return cosine


SINE = sine_float32, sine_float64
COSINE = cosine_float32, cosine_float64 = for_both(_cosine, (cosine_terms_float32, cosine_terms_float64), HALF, ONE)
