"""sin(pi * x) and cot(pi * x) for float64, for the reflection formulas of the gamma function and its relatives.

The distance to the nearest integer is exact, so that results keep their digits near all zeros and poles. The polynomial
is that of Chebyshev interpolation of sin(pi * f) / f in 250 bits, rounded.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.formats import coefficients

ONE_HALF, ZERO = np.float64(0.5), np.float64(0)
S = coefficients(  # relative error 2**-61
    np.float64, 3.141592653589793, -5.167712780049969, 2.5501640398773007, -0.599264529318946, 0.08214588657312355,
    -0.007370430506093225, 0.00046629981702308817, -2.1903499125519212e-05, 7.697847275590284e-07,
)  # fmt: skip


@inlined("contract")
def sine(f: np.float64) -> np.float64:
    """sin(pi * f) for abs(f) <= 1/2."""
    s = f * f
    p = (((S[8] * s + S[7]) * s + S[6]) * s + S[5]) * s + S[4]
    return f * ((((p * s + S[3]) * s + S[2]) * s + S[1]) * s + S[0])


@inlined("contract")
def sin_pi(x: np.float64) -> np.float64:
    """sin(pi * x); NaN for infinities."""
    whole = np.rint(x)
    value = sine(x - whole)
    half = whole * ONE_HALF
    return value if np.floor(half) == half else -value


@inlined("contract")
def cot_pi(x: np.float64) -> np.float64:
    """cos(pi * x) / sin(pi * x); NaN for infinities."""
    f = x - np.rint(x)
    return sine(ONE_HALF - abs(f)) / sine(f)
