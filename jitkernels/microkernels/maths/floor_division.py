"""floor_divide and remainder of floats, as NumPy computes them: from fmod, the way that Python's `divmod` does.

The remainder has the sign of b, also where it is zero. The quotient is that of a without its remainder, rounded to a
whole number; of infinities, zeros and NaN it is what this arithmetic makes of them, but a / b where b is zero.
"""

from typing import Any

import numpy as np

from jitkernels.maths.fmod import fmod_float32, fmod_float64
from jitkernels.native.source import inlined


@inlined()
def remainder_of(left: Any, b: Any) -> Any:
    """The remainder by b, from fmod."""
    turned = left + b if (left < 0) != (b < 0) else left
    return np.copysign(left, b) if left == 0 else turned


@inlined()
def quotient_of(left: Any, a: Any, b: Any) -> Any:
    """The quotient by b, from fmod."""
    found = (a - left) / b
    found = found - 1 if (left != 0) & ((left < 0) != (b < 0)) else found
    whole = np.floor(found)
    whole = whole + 1 if found - whole > 0.5 else whole
    whole = np.copysign(whole, a / b) if found == 0 else whole
    return a / b if b == 0 else whole


@inlined()
def remainder_float32(a: Any, b: Any) -> Any:
    """The remainder for every float32."""
    return remainder_of(fmod_float32(a, b), b)


@inlined()
def remainder_float64(a: Any, b: Any) -> Any:
    """The remainder for every float64."""
    return remainder_of(fmod_float64(a, b), b)


@inlined()
def floor_divide_float32(a: Any, b: Any) -> Any:
    """The quotient for every float32."""
    return quotient_of(fmod_float32(a, b), a, b)


@inlined()
def floor_divide_float64(a: Any, b: Any) -> Any:
    """The quotient for every float64."""
    return quotient_of(fmod_float64(a, b), a, b)
