"""atan2 for float32 and float64: the angle of a point, all quadrants and special cases as in C99's annex F.

q is the smaller coordinate by the larger one, without signs, and the polynomial of `atan` gives its angle in [0, pi/4].
It counts from the axis on which the larger coordinate lies, at 0 or pi for x, at pi/2 for y, up or down: an axis from
which it counts down is taken with a minus, and then the sum is the angle with a minus. As the result has the sign of y,
neither matters. Where both coordinates are infinite q is 1, where both are 0 it is 0.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.asin import HALF_PI, HALF_PI_REST
from jitkernels.microkernels.maths.atan import BEYOND
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import INFINITY, ZERO

LEAST = np.float32(2.0**-149), np.float64(2.0**-1074)
PI = np.float32(3.1415927), np.float64(3.141592653589793)
PI_REST = np.float32(-8.742278e-08), np.float64(1.2246467991473532e-16)
AXES = tuple(zip(ZERO, HALF_PI, HALF_PI_REST, PI, PI_REST, strict=True))


def _atan2(form: FloatFormat, beyond: Any, least: Any, one: Any, infinity: Any, axes: tuple[Any, ...]) -> Any:
    integer = form.integer
    zero, upright, upright_rest, pi, pi_rest = axes

    @inlined("contract")
    def atan2(y: Any, x: Any) -> Any:
        """Compute atan2 of y and x; at most 1.60 ULP of float32 (2e7 inputs measured), 1.80 ULP of float64 (2e7)."""
        height, width = abs(y), abs(x)
        is_steep, is_left = height > width, x.view(integer) < 0
        smaller, larger = width if is_steep else height, height if is_steep else width
        q = smaller / max(larger, least)  # 0 for two zeros, without the flag of 0 / 0
        q = one if larger == infinity and smaller == larger else q
        more = beyond(q)
        axis = (upright if is_steep else -pi) if is_left else (-upright if is_steep else zero)
        rest = (upright_rest if is_steep else -pi_rest) if is_left else (-upright_rest if is_steep else zero)
        return np.copysign(axis + (q + (more + rest)), y)

    return atan2


atan2_float32, atan2_float64 = for_both(_atan2, BEYOND, LEAST, ONE, INFINITY, AXES)
