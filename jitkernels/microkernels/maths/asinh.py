"""asinh for float32 and float64: log1p(x + x**2 / (1 + sqrt(1 + x**2))) of |x|, without cancellation.

The rounding error of that sum enters the logarithm as well. Where x**2 would overflow the result is log(x) + ln 2, on a
slow path behind one test of all lanes.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import cold, inlined
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import INFINITY, JOINED, PARTS, ZERO
from jitkernels.microkernels.maths.log1p import PLUS_LOG1P

LARGE = np.float32(2.0**30), np.float64(2.0**60)  # from here on the result is log(2 * size)


def _log_of_twice(form: FloatFormat, parts: Any, joined: Any, one: Any, infinity: Any) -> Any:
    @cold("contract")
    def log_of_twice(size: Any) -> Any:
        """log(2 * size), the value of asinh and acosh for large arguments; for 1 and more, infinity and NaN."""
        k, f = parts(size)
        return joined(k + one, f) if size < infinity else size

    return log_of_twice


LOG_OF_TWICE = for_both(_log_of_twice, PARTS, JOINED, ONE, INFINITY)


def _asinh(form: FloatFormat, plus_log1p: Any, log_of_twice: Any, large: Any, one: Any, zero: Any) -> Any:
    number, integer, sign_mask = form.number, form.integer, form.sign

    @inlined("contract")
    def asinh(x: Any) -> Any:
        """Compute asinh of x; at most 1.70 ULP of float32 (1.1e9 inputs measured), 1.67 ULP of float64 (2.8e7)."""
        size = abs(x)
        square = size * size
        more = square / (one + np.sqrt(square + one))
        above = size + more
        result = plus_log1p(zero, above, (size - above) + more)
        if not size < large:
            result = log_of_twice(size)
        sign = x.view(integer) & sign_mask
        return (result.view(integer) | sign).view(number)

    return asinh


asinh_float32, asinh_float64 = for_both(_asinh, PLUS_LOG1P, LOG_OF_TWICE, LARGE, ONE, ZERO)
