"""nextafter and spacing (ULP): floats are ordered as the integers of their bits."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.formats import FloatFormat, for_both


def _nextafter(form: FloatFormat) -> Any:
    number, integer, least = form.number, form.integer, np.finfo(form.number).smallest_subnormal

    @inlined()
    def nextafter(a: Any, b: Any) -> Any:
        """The next number from a to b; b where they are equal."""
        bits = a.view(integer)
        moved = (bits + 1 if (a < b) == (bits >= 0) else bits - 1).view(number)
        moved = np.copysign(least, b) if a == 0 else moved
        return b if a == b else a + b if (a != a) | (b != b) else moved

    return nextafter


def _spacing(form: FloatFormat) -> Any:
    number, integer = form.number, form.integer

    @inlined()
    def spacing(a: Any) -> Any:
        """The distance to the next number away from zero, with the sign of a; NaN for infinities."""
        return (a.view(integer) + 1).view(number) - a

    return spacing


nextafter_float32, nextafter_float64 = for_both(_nextafter)
spacing_float32, spacing_float64 = for_both(_spacing)
