"""floor_divide and remainder of floats, with NumPy's semantics: computed from fmod, as Python's `divmod` does.

The remainder has the sign of b, also where it is zero. The quotient is (a - remainder) / b, rounded to an integer; for
infinities, zeros and NaN it is the result of this arithmetic, but a / b where b is zero.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.fmod import fmod_float32, fmod_float64
from jitkernels.microkernels.maths.formats import FloatFormat, for_both


@inlined()
def remainder_of(rest: Any, b: Any) -> Any:
    """The remainder by b, from fmod."""
    remainder = rest + (b if (rest < 0) != (b < 0) else 0)
    return np.copysign(rest, b) if rest == 0 else remainder


@inlined()
def quotient_of(rest: Any, a: Any, b: Any) -> Any:
    """The quotient by b, from fmod."""
    quotient = (a - rest) / b
    quotient = quotient - 1 if (rest != 0) & ((rest < 0) != (b < 0)) else quotient
    whole = np.floor(quotient)
    whole = whole + 1 if quotient - whole > 0.5 else whole
    whole = np.copysign(whole, a / b) if quotient == 0 else whole
    return a / b if b == 0 else whole


def _remainder(form: FloatFormat, fmod: Any) -> Any:
    @inlined()
    def remainder(a: Any, b: Any) -> Any:
        """The remainder for every a and b."""
        return remainder_of(fmod(a, b), b)

    return remainder


def _floor_divide(form: FloatFormat, fmod: Any) -> Any:
    @inlined()
    def floor_divide(a: Any, b: Any) -> Any:
        """The quotient for every a and b."""
        return quotient_of(fmod(a, b), a, b)

    return floor_divide


FMOD = fmod_float32, fmod_float64
remainder_float32, remainder_float64 = for_both(_remainder, FMOD)
floor_divide_float32, floor_divide_float64 = for_both(_floor_divide, FMOD)
