"""MATMUL_BATCHED by numba: as MATMUL, pair by pair."""

from typing import Any

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, threads_along, usable


@implements(MatMulBatchedAttr, can_be_used=usable, variants=threads_along("batch"))
def matmul_batched(attr: MatMulBatchedAttr, parallel: bool = False) -> RangeKernel:
    trans_a, trans_b = attr.trans_a, attr.trans_b

    def body(a: Any, b: Any, c: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for pair in range(begin, end):
            first, second, result = pair * sizes.m * sizes.k, pair * sizes.k * sizes.n, pair * sizes.m * sizes.n
            for i in range(sizes.m):
                for j in range(sizes.n):
                    c[result + i * sizes.n + j] = real(0)
                for p in range(sizes.k):
                    factor = a[first + p * sizes.m + i] if trans_a else a[first + i * sizes.k + p]
                    if trans_b:
                        for j in range(sizes.n):
                            c[result + i * sizes.n + j] += factor * b[second + j * sizes.k + p]
                    else:
                        for j in range(sizes.n):
                            c[result + i * sizes.n + j] += factor * b[second + p * sizes.n + j]

    return numba_kernel(attr, body, "batch", parallel=parallel)
