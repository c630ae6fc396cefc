"""Sum of squared deviations of a row in one pass, shifted by a number that is near the mean.

With d = x - near, the squares about the mean are sum(d**2) - sum(d)**2 / n. Rounding costs digits in proportion to n *
(mean - near)**2: where that is not small beside the result, a second pass uses a nearer shift.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.strict_arithmetic import plus
from jitkernels.microkernels.reduction.mean_variance import sums_about

SHIFT_ELEMENTS = 64
"""Elements whose mean is the first shift, near that of the row unless they are unlike the rest."""
MAX_SHIFT_RATIO = 1.0
"""Largest ratio of n * (mean - near)**2 to the result, which bounds the growth of the rounding error."""


def row_squares(dtype: str) -> Any:
    """Return the function ``(x, n)``: the sum of squared deviations of a row of `SHIFT_ELEMENTS` elements or more."""
    number = np.dtype(dtype).type
    zero, one, share, most = number(0), number(1), number(1 / SHIFT_ELEMENTS), number(MAX_SHIFT_RATIO)
    sums = sums_about(dtype)

    @inlined("reassoc", "contract")
    def squares_of(x: Any, n: int) -> Any:
        near, count = zero, number(n)
        for i in range(SHIFT_ELEMENTS):
            near += x[i]
        near *= share
        passes = 2
        while True:
            total, squares = sums(x, 0, n, one, near)
            moved = total / count
            excess = total * moved
            squares -= excess
            passes -= 1
            if (passes == 0) | (excess <= squares * most):
                return max(squares, zero)
            near = plus(near, moved)

    return squares_of
