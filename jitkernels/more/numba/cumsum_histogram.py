"""CUMSUM by numba: what rounding loses is kept beside each running sum."""

from typing import Any

from jitkernels.attrs.cumsum_histogram import CumsumAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import numba_kernel, real, threads_along, usable


@implements(CumsumAttr, can_be_used=usable, variants=threads_along("rows"))
def cumsum(attr: CumsumAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            total, lost = real(0), real(0)
            for i in range(row * n, (row + 1) * n):
                value = x[i]
                whole = total + value
                added = whole - total
                lost += total - (whole - added) + (value - added)
                total = whole
                exact = total + lost
                y[i] = exact if exact == exact else total

    return numba_kernel(attr, body, "rows", parallel=parallel, in_place=True)
