"""logaddexp(x, y) = log(exp(x) + exp(y)) for float32 and float64, as max(x, y) + log1p(exp(-|x - y|)).

The error is in units of the larger one of the two terms: where they cancel, rounding x and y has cost as much. The
rounding error of x - y becomes a factor of the second term, and the rounding error of that product is added to it.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import ZERO
from jitkernels.microkernels.maths.log1p import PLUS_LOG1P
from jitkernels.microkernels.maths.softplus import DECAY
from jitkernels.microkernels.maths.strict_arithmetic import two_sum_error

FAR = np.float32(200), np.float64(2000)  # differences from which on the smaller term is zero


def difference(form: FloatFormat, decay: Any, slope: Any, far: Any, zero: Any) -> Any:
    """Make the function of x and y: base**-abs(x - y), as the sum of two; `slope` is the logarithm of the base."""

    @inlined("contract")
    def power_of_difference(x: Any, y: Any) -> tuple[Any, Any]:
        more, less = max(x, y), min(x, y)
        gap = abs(x - y)
        near = less if gap < far else more  # infinities and the largest numbers would set a flag
        error = two_sum_error(more, -near) if gap < far else zero
        gap = zero if x == y else gap  # inf - inf is NaN
        e, low = decay(gap)
        return e, low - e * error * slope

    return power_of_difference


def _logaddexp(form: FloatFormat, power_of_difference: Any, plus_log1p: Any) -> Any:
    @inlined("contract")
    def logaddexp(x: Any, y: Any) -> Any:
        """Compute logaddexp of x, y; at most 1.8 ULP of float32 (3e6 pairs measured), 1.4 ULP of float64 (3e6)."""
        e, low = power_of_difference(x, y)
        return plus_log1p(max(x, y), e, low)

    return logaddexp


logaddexp_float32, logaddexp_float64 = for_both(_logaddexp, for_both(difference, DECAY, ONE, FAR, ZERO), PLUS_LOG1P)
