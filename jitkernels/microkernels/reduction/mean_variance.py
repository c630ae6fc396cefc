"""Mean and variance of rows in two passes: the mean, then the squared deviations.

Rows whose mean is large against their deviation, or whose squares overflow or underflow, get a careful second
evaluation: with the mean corrected by the mean deviation, and the row scaled by a power of two.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.maths.blocked_summation import part_length
from jitkernels.microkernels.maths.strict_arithmetic import compensated, distance, plus, times, two_sum_error
from jitkernels.microkernels.reduction.simd_row_sum import MAX_PLAIN_ROW, row_squares, row_sum

MAX_MEAN_TO_VARIANCE = 16.0
"""A mean whose square exceeds so many variances is corrected: its rounding would show in the result."""


@frozen_dataclass
class Limits:
    """The range of sums of squares without underflow or overflow, and the scales that bring other rows into it."""

    smallest: float
    largest: float
    unit: float


LIMITS = {"float32": Limits(2.0**-90, 2.0**120, 2.0**84), "float64": Limits(2.0**-900, 2.0**1000, 2.0**530)}


def sums_about(dtype: str) -> Any:
    """Return the function ``(x, first, last, unit, near)``: the sums of ``d = x * unit - near`` and of d**2."""
    zero, length = np.dtype(dtype).type(0), part_length(dtype)

    @inlined("reassoc", "contract")
    def sums(x: Any, first: int, last: int, unit: Any, near: Any) -> Any:
        total, total_lost, squares, squares_lost = zero, zero, zero, zero
        for start in range(first, last, length):
            part, part_squares = zero, zero
            for i in range(start, min(start + length, last)):
                far = distance(x[i], unit, near)
                part += far
                part_squares += far * far
            total_lost += two_sum_error(total, part)
            total = plus(total, part)
            squares_lost += two_sum_error(squares, part_squares)
            squares = plus(squares, part_squares)
        return compensated(total, total_lost), compensated(squares, squares_lost)

    return sums


def careful_moments(dtype: str) -> Any:
    """Return the function ``(x, first, n, eps)`` for rows on which `moments` bails out."""
    number = np.dtype(dtype).type
    limits, sums = LIMITS[dtype], sums_about(dtype)
    zero, one, spread = number(0), number(1), number(MAX_MEAN_TO_VARIANCE)
    smallest, largest, near = number(limits.smallest), number(limits.largest), number(limits.smallest**0.5)
    tiny = np.finfo(dtype).tiny
    up, down = number(limits.unit), number(1 / limits.unit)

    @noinline("reassoc", "contract")
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
                continue  # the deviations were not from the mean
            if (squares - mean * mean * share >= smallest) & (squares <= largest):
                return unit, mean, squares / count, one / np.sqrt(squares / count + eps)
            if unit == one and not squares <= largest:
                # A scaled eps must stay nonzero: for a constant row it is the whole denominator.
                eps = max(times(times(eps, down), down), tiny) if eps > zero else zero
                mean, unit, passes = zero, down, 3
            elif unit == one and (squares < smallest) & (abs(mean) < near) & (eps < near * near):
                mean, unit, eps, passes = zero, up, times(times(eps, up), up), 3
            elif passes == 0:
                return unit, mean, squares / count, one / np.sqrt(squares / count + eps)

    return measures_with_care


def mean_of_infinite(dtype: str) -> Any:
    """Return the function ``(x, first, n)``: the mean of a row with an infinity or a NaN.

    No overflow other than that of the elements themselves makes it infinite.
    """
    number = np.dtype(dtype).type
    zero, down = number(0), number(1 / LIMITS[dtype].unit)

    @noinline()
    def mean(x: Any, first: int, n: int) -> Any:
        total = zero
        for i in range(first, first + n):
            total += times(x[i], down)
        return total

    return mean


def moments(dtype: str, width: int, measures_with_care: Any) -> Any:
    """Return the function ``(x, n, eps)`` in vectors of `width` bytes, which bails out to `careful_moments`."""
    number = np.dtype(dtype).type
    limits = LIMITS[dtype]
    one, spread = number(1), number(MAX_MEAN_TO_VARIANCE)
    smallest, largest = number(limits.smallest), number(limits.largest)
    sum_of, squares_of = row_sum(dtype, width), row_squares(dtype, width)

    @inlined("reassoc", "contract")
    def measures(x: Any, n: int, eps: Any) -> Any:
        """Return the scale of a row, its scaled mean and variance, and the factor of the deviations."""
        if n <= MAX_PLAIN_ROW:
            share = one / number(n)
            mean = times(sum_of(x, n), share)
            squares = squares_of(x, n, mean)
            is_near = squares - mean * mean * (number(n) / spread) >= smallest
            if is_near & (squares <= largest) | (n == 1):  # the mean of one element is exact
                variance = times(squares, share)
                return one, mean, variance, one / np.sqrt(variance + eps)
        return measures_with_care(x, 0, n, eps)

    return measures
