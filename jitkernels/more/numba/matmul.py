"""MATMUL by numba: rows of the result, to which multiples of rows of the second factor are added."""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, threads_along, usable


@implements(MatMulAttr, can_be_used=usable, variants=threads_along("m"))
def matmul(attr: MatMulAttr, parallel: bool = False) -> RangeKernel:
    trans_a, trans_b, beta, adds = attr.trans_a, attr.trans_b, float(attr.beta), attr.beta != 0

    def body(a: Any, b: Any, c: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for i in range(begin, end):
            for j in range(sizes.n):
                c[i * sizes.n + j] = real(beta) * c[i * sizes.n + j] if adds else real(0)
            for p in range(sizes.k):
                factor = a[p * sizes.m + i] if trans_a else a[i * sizes.k + p]
                if trans_b:
                    for j in range(sizes.n):
                        c[i * sizes.n + j] += factor * b[j * sizes.k + p]
                else:
                    for j in range(sizes.n):
                        c[i * sizes.n + j] += factor * b[p * sizes.n + j]

    return numba_kernel(attr, body, "m", parallel=parallel)
