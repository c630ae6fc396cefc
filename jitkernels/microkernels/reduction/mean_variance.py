"""The mean and the deviation of rows: the mean, then the squares about it.

Rows that lie far from zero for their spread, or whose squares leave the range of the type, are gone through
again, with the mean corrected by the mean distance from it and the row scaled by a power of two.
"""

from typing import Any

import numpy as np

from jitkernels.loops.row_reduction import row_squares, row_sum
from jitkernels.maths.exact import distance, lost_in, plus, settled, times
from jitkernels.native.source import apart, inlined
from jitkernels.records import record

SUMMED = 4096
"""Elements of a row that are added up before they are joined to the sum."""
SPREAD = 16.0
"""A mean whose square is more than so many variances is corrected: its rounding would show in the result."""


@record
class Limits:
    """Sums of squares that lost nothing to underflow or overflow, and what brings a row of others there."""

    smallest: float
    largest: float
    unit: float


LIMITS = {
    "float32": Limits(2.0**-90, 2.0**120, 2.0**84),
    "float64": Limits(2.0**-900, 2.0**1000, 2.0**530),
}


def sums_about(dtype: str) -> Any:
    """The function ``(x, first, last, unit, near)``: the sum of ``d = x * unit - near``, and that of d**2."""
    zero = np.dtype(dtype).type(0)

    @inlined("reassoc", "contract")
    def sums(x: Any, first: int, last: int, unit: Any, near: Any) -> Any:
        total, total_lost, squares, squares_lost = zero, zero, zero, zero
        for start in range(first, last, SUMMED):
            part, part_squares = zero, zero
            for i in range(start, min(start + SUMMED, last)):
                far = distance(x[i], unit, near)
                part += far
                part_squares += far * far
            total_lost += lost_in(total, part)
            total = plus(total, part)
            squares_lost += lost_in(squares, part_squares)
            squares = plus(squares, part_squares)
        return settled(total, total_lost), settled(squares, squares_lost)

    return sums


def careful_moments(dtype: str) -> Any:
    """The function ``(x, first, n, eps)`` for rows that `moments` gives up."""
    number = np.dtype(dtype).type
    limits, sums = LIMITS[dtype], sums_about(dtype)
    zero, one, spread = number(0), number(1), number(SPREAD)
    smallest, largest, near = number(limits.smallest), number(limits.largest), number(limits.smallest**0.5)
    tiny = np.finfo(dtype).tiny
    up, down = number(limits.unit), number(1 / limits.unit)

    @apart("reassoc", "contract")
    def measures_with_care(x: Any, first: int, n: int, eps: Any) -> Any:
        last, count = first + n, number(n)
        share = count / spread
        mean, unit, passes = zero, one, 3
        while True:
            total, squares = sums(x, first, last, unit, mean)
            mean = plus(mean, total / count)
            squares -= total / count * total
            passes -= 1
            if passes == 2:
                continue  # the squares were not about the mean
            if (squares - mean * mean * share >= smallest) & (squares <= largest):
                return unit, mean, squares / count, one / np.sqrt(squares / count + eps)
            if unit == one and not squares <= largest:
                # An eps that is not zero stays so: of a constant row there is nothing else.
                eps = max(times(times(eps, down), down), tiny) if eps > zero else zero
                mean, unit, passes = zero, down, 3
            elif unit == one and (squares < smallest) & (abs(mean) < near) & (eps < near * near):
                mean, unit, eps, passes = zero, up, times(times(eps, up), up), 3
            elif passes == 0:
                return unit, mean, squares / count, one / np.sqrt(squares / count + eps)

    return measures_with_care


def mean_of_infinite(dtype: str) -> Any:
    """The function ``(x, first, n)``: the mean of a row with an infinity or a NaN, which no other overflow makes."""
    number = np.dtype(dtype).type
    zero, down = number(0), number(1 / LIMITS[dtype].unit)

    @apart()
    def mean(x: Any, first: int, n: int) -> Any:
        total = zero
        for i in range(first, first + n):
            total += times(x[i], down)
        return total

    return mean


def moments(dtype: str, width: int, measures_with_care: Any) -> Any:
    """The function ``(x, n, eps)`` in vectors of so many bytes, which `careful_moments` gives the rest of."""
    number = np.dtype(dtype).type
    limits = LIMITS[dtype]
    one, spread = number(1), number(SPREAD)
    smallest, largest = number(limits.smallest), number(limits.largest)
    sum_of, squares_of = row_sum(dtype, width), row_squares(dtype, width)

    @inlined("reassoc", "contract")
    def measures(x: Any, n: int, eps: Any) -> Any:
        """What a row is multiplied by, its mean and variance then, and what distances from the mean are."""
        if n <= SUMMED:
            share = one / number(n)
            mean = times(sum_of(x, n), share)
            squares = squares_of(x, n, mean)
            is_near = squares - mean * mean * (number(n) / spread) >= smallest
            if is_near & (squares <= largest) | (n == 1):  # the mean of one element is exact
                variance = times(squares, share)
                return one, mean, variance, one / np.sqrt(variance + eps)
        return measures_with_care(x, 0, n, eps)

    return measures
