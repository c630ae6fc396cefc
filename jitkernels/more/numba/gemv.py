"""GEMV by numba."""

from typing import Any

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import add, numba_kernel, real, threads_along, usable


@implements(GEMVAttr, can_be_used=usable, variants=threads_along("m"))
def gemv(attr: GEMVAttr, parallel: bool = False) -> RangeKernel:
    beta, adds = float(attr.beta), attr.beta != 0

    def rows_of_a(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            total = real(0)
            for j in range(n):
                total = add(total, a[i * n + j] * x[j])
            y[i] = total + real(beta) * y[i] if adds else total

    def columns_of_a(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = real(beta) * y[i] if adds else real(0)
        for j in range(n):
            factor = x[j]
            for i in range(begin, end):
                y[i] += a[j * m + i] * factor

    return numba_kernel(attr, columns_of_a if attr.trans else rows_of_a, "m", parallel=parallel)
