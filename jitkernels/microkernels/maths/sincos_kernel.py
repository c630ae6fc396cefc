"""Sine and cosine kernels for at most pi/4, which sin, cos and tan share.

Odd and even polynomials from a Remez exchange in 50-digit arithmetic, the error weighted relative to the result;
coefficients were rounded to the type one by one, lowest power first, and the rest fitted again. The first terms, r and
1 - r**2/2, are added last, together with their corrections: the `rest` of r and the rounding error of 1 - r**2/2. So
the error is hardly more than the last rounding.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.strict_arithmetic import times

ONE_32, HALF_32 = np.float32(1), np.float32(0.5)
S3_32 = np.float32(-0.16666655)  # relative error of the whole sine: 2**-27.9
S5_32 = np.float32(0.008332189)
S7_32 = np.float32(-0.00019518292)
C4_32 = np.float32(0.041666646)  # relative error of the whole cosine: 2**-33.0
C6_32 = np.float32(-0.001388731)
C8_32 = np.float32(2.4432327e-05)

ONE_64, HALF_64 = np.float64(1), np.float64(0.5)
S3_64 = np.float64(-0.1666666666666663)  # relative error of the whole sine: 2**-57.9
S5_64 = np.float64(0.00833333333332184)
S7_64 = np.float64(-0.00019841269829358503)
S9_64 = np.float64(2.7557313538494155e-06)
S11_64 = np.float64(-2.5050734384315546e-08)
S13_64 = np.float64(1.5895432908425193e-10)
C4_64 = np.float64(0.041666666666666595)  # relative error of the whole cosine: 2**-63.9
C6_64 = np.float64(-0.0013888888888873342)
C8_64 = np.float64(2.4801587289002062e-05)
C10_64 = np.float64(-2.75573142170262e-07)
C12_64 = np.float64(2.0875705393065836e-09)
C14_64 = np.float64(-1.1358749019056813e-11)


@inlined("contract")
def sine_float32(r: np.float32, rest: np.float32) -> np.float32:
    """sin(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    p = (S7_32 * z + S5_32) * z + S3_32
    return r + (p * (z * r) + rest)


@inlined("contract")
def cosine_float32(r: np.float32, rest: np.float32) -> np.float32:
    """cos(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    p = (C8_32 * z + C6_32) * z + C4_32
    half = HALF_32 * z
    most = ONE_32 - half
    return most + (((ONE_32 - most) - half) + (p * (z * z) - times(r, rest)))


@inlined("contract")
def sine_float64(r: np.float64, rest: np.float64) -> np.float64:
    """sin(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    square = z * z
    p = ((S13_64 * z + S11_64) * square + (S9_64 * z + S7_64)) * square + (S5_64 * z + S3_64)
    return r + (p * (z * r) + (rest - HALF_64 * z * rest))


@inlined("contract")
def cosine_float64(r: np.float64, rest: np.float64) -> np.float64:
    """cos(r + rest) for -pi/4 <= r <= pi/4."""
    z = r * r
    square = z * z
    p = ((C14_64 * z + C12_64) * square + (C10_64 * z + C8_64)) * square + (C6_64 * z + C4_64)
    half = HALF_64 * z
    most = ONE_64 - half
    return most + (((ONE_64 - most) - half) + (p * square - times(r, rest)))
