"""The squares of a row about its mean in one pass: both sums about a number that is near the mean already.

With d = x - near, the squares about the mean are sum(d**2) - sum(d)**2 / n, of which rounding leaves as many digits as
n * (mean - near)**2 lets: where that is not small beside them, the row is gone through again with a nearer number.
"""

from typing import Any

import numpy as np

from jitkernels.loops.row_moments import sums_about
from jitkernels.maths.exact import plus
from jitkernels.native.source import inlined

FIRST = 64
"""Elements whose mean is near that of the row, unless they are unlike the rest."""
NEAR = 1.0
"""How many times the squares about the mean those about `near` may be more, as much as rounding grows by at most."""


def row_squares(dtype: str) -> Any:
    """The function ``(x, n)``: the sum of squares about the mean of a row of `FIRST` elements or more."""
    number = np.dtype(dtype).type
    zero, one, share, most = number(0), number(1), number(1 / FIRST), number(NEAR)
    sums = sums_about(dtype)

    @inlined("reassoc", "contract")
    def squares_of(x: Any, n: int) -> Any:
        near, count = zero, number(n)
        for i in range(FIRST):
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
