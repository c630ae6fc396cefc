"""logaddexp(x, y) = log(exp(x) + exp(y)) for float32 and float64, as max(x, y) + log1p(exp(-|x - y|)).

The error is in units of the larger one of the two terms: where they cancel, rounding x and y has cost as much. The
rounding error of x - y becomes a factor of the second term, and the rounding error of that product is added to it.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.log import ZERO_32, ZERO_64
from jitkernels.microkernels.maths.log1p import plus_log1p_float32, plus_log1p_float64
from jitkernels.microkernels.maths.softplus import decay_float32, decay_float64
from jitkernels.microkernels.maths.strict_arithmetic import two_sum_error

FAR_32 = np.float32(200)  # differences from which on the smaller term is zero
FAR_64 = np.float64(2000)


@inlined("contract")
def difference_float32(x: np.float32, y: np.float32) -> tuple[np.float32, np.float32]:
    """exp(-abs(x - y)), as the sum of two."""
    more, less = max(x, y), min(x, y)
    gap = abs(x - y)
    near = less if gap < FAR_32 else more  # infinities and the largest numbers would set a flag
    error = two_sum_error(more, -near) if gap < FAR_32 else ZERO_32
    gap = ZERO_32 if x == y else gap  # inf - inf is NaN
    e, low = decay_float32(gap)
    return e, low - e * error


@inlined("contract")
def logaddexp_float32(x: np.float32, y: np.float32) -> np.float32:
    """logaddexp(x, y) for all float32; at most 1.8 ULP (3e6 pairs measured)."""
    e, low = difference_float32(x, y)
    return plus_log1p_float32(max(x, y), e, low)


@inlined("contract")
def difference_float64(x: np.float64, y: np.float64) -> tuple[np.float64, np.float64]:
    """exp(-abs(x - y)), as the sum of two."""
    more, less = max(x, y), min(x, y)
    gap = abs(x - y)
    near = less if gap < FAR_64 else more  # infinities and the largest numbers would set a flag
    error = two_sum_error(more, -near) if gap < FAR_64 else ZERO_64
    gap = ZERO_64 if x == y else gap  # inf - inf is NaN
    e, low = decay_float64(gap)
    return e, low - e * error


@inlined("contract")
def logaddexp_float64(x: np.float64, y: np.float64) -> np.float64:
    """logaddexp(x, y) for all float64; at most 1.4 ULP (3e6 pairs measured)."""
    e, low = difference_float64(x, y)
    return plus_log1p_float64(max(x, y), e, low)
