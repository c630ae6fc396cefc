"""acosh for float32 and float64: log1p(d + sqrt(d**2 + 2 * d)) with d = x - 1, without cancellation.

The rounding error of that sum enters the logarithm as well. Where d**2 would overflow the result is log(x) + ln 2, on a
slow path behind one test of all lanes.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.asinh import LARGE, LOG_OF_TWICE
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import ZERO
from jitkernels.microkernels.maths.log1p import PLUS_LOG1P


def _acosh(form: FloatFormat, plus_log1p: Any, log_of_twice: Any, large: Any, one: Any, zero: Any) -> Any:
    @inlined("contract")
    def acosh(x: Any) -> Any:
        """Compute acosh of x; at most 1.91 ULP of float32 (all inputs measured), 1.79 ULP of float64 (2.8e7 inputs)."""
        less = x - one
        root = np.sqrt(less * less + (less + less))
        above = root + less
        result = plus_log1p(zero, above, (root - above) + less)
        if not x < large:
            result = log_of_twice(x)
        if not x >= one:
            result = result if x >= one else np.sqrt(less)  # NaN, and the floating-point flag with it
        return result

    return acosh


acosh_float32, acosh_float64 = for_both(_acosh, PLUS_LOG1P, LOG_OF_TWICE, LARGE, ONE, ZERO)
