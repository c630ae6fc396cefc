"""The sum of a row of any length, in loops that LLVM vectorises."""

from typing import Any

import numpy as np

from jitkernels.maths.exact import lost_in, plus
from jitkernels.native.source import inlined

SUMMED = 2048
"""Elements that are added up before they are joined to the sum: 32 or 64 additions one after another."""


def row_sum(dtype: str) -> Any:
    """The function ``(x, begin, end)``: the sum of x[begin:end], of numbers that are no infinities."""
    zero = np.dtype(dtype).type(0)

    @inlined("reassoc")
    def sum_of(x: Any, begin: int, end: int) -> Any:
        total, lost = zero, zero
        if end - begin <= SUMMED:
            for i in range(begin, end):
                total += x[i]
            return total
        while begin < end:
            part = zero
            for i in range(begin, min(begin + SUMMED, end)):
                part += x[i]
            lost += lost_in(total, part)
            total = plus(total, part)
            begin += SUMMED
        return plus(total, lost)

    return sum_of
