"""The logarithm of the length of a vector: the real part of the logarithm of a complex number.

Near the unit circle the length rounds to 1 and its logarithm would keep no digit. There it is ``log1p`` of
``x * x + y * y - 1``, whose products and sums keep what they round away. float32: in float64, where squares are exact.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.hypot import hypot_float64
from jitkernels.microkernels.maths.log import INFINITY, log_float64
from jitkernels.microkernels.maths.log1p import log1p_float64
from jitkernels.microkernels.maths.strict_arithmetic import plus, times, times_plus_float64, two_sum_error

INFINITY_32, INFINITY_64 = INFINITY
SMALL_64, UP_64, DOWN_64 = np.float64(2.0**-900), np.float64(2.0**100), np.float64(100 * np.log(2.0))
LARGE_64, HALF_64, LOG_2 = np.float64(2.0**1022), np.float64(0.5), np.float64(np.log(2.0))
ONE_64, ZERO_64, TWO_64, QUARTER_64, FOUR_64 = (np.float64(number) for number in (1, 0, 2, 0.25, 4))


@inlined("contract")
def log_hypot_float32(x: np.float32, y: np.float32) -> np.float32:
    """log(hypot(x, y)) for all float32; at most 0.51 ULP."""
    width, height = abs(np.float64(x)), abs(np.float64(y))
    large, small = max(width, height), min(width, height)
    squares = width * width + times(height, height)
    result = log_float64(squares)
    if (squares > QUARTER_64) & (squares < FOUR_64):
        result = log1p_float64(plus(plus(times(large, large), -ONE_64), times(small, small)))
    result = result * HALF_64
    return INFINITY_32 if (abs(x) == INFINITY_32) | (abs(y) == INFINITY_32) else np.float32(result)


@inlined("contract")
def log_hypot_float64(x: np.float64, y: np.float64) -> np.float64:
    """log(hypot(x, y)) for all float64; at most 2 ULP."""
    width, height = abs(x), abs(y)
    large, small = max(width, height), min(width, height)
    is_small, is_large = large < SMALL_64, large > LARGE_64
    scale = UP_64 if is_small else (HALF_64 if is_large else ONE_64)
    shift = DOWN_64 if is_small else (-LOG_2 if is_large else ZERO_64)
    size = hypot_float64(x * scale, y * scale)
    result: np.float64 = plus(log_float64(size), -shift)
    if (size > HALF_64) & (size < TWO_64):
        first, second = times(large, large), times(small, small)
        first_low, second_low = times_plus_float64(large, large, -first), times_plus_float64(small, small, -second)
        rest, low = plus(first, -ONE_64), plus(first_low, second_low)
        total = plus(rest, second)
        lost = two_sum_error(first, -ONE_64) + two_sum_error(rest, second) + two_sum_error(first_low, second_low)
        result = HALF_64 * log1p_float64(plus(plus(total, low), lost + two_sum_error(total, low)))
    return result
