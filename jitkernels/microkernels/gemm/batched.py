"""Batched matrix multiply: the loop over the pairs of the batch, around the GEMM of one pair."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.gemm.gemm_arguments import Operands
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.runtime.loading import loader

BATCHED_THREAD_MULTIPLY_ADDS = 32**3
"""Least number of multiply-adds per thread."""


def pair_of(attr: MatMulBatchedAttr) -> MatMulAttr:
    """Return the schema of the GEMM of one pair of the batch."""
    return MatMulAttr(m=attr.m, n=attr.n, k=attr.k, trans_a=attr.trans_a, trans_b=attr.trans_b, dtype=attr.dtype)


def batched_kernel(attr: MatMulBatchedAttr, pair: RangeKernel, *, parallel: bool) -> RangeKernel:
    """Make the range kernel that calls one GEMM for each pair, which threads split if it is `parallel`."""
    product = loader.entry_of(pair, pair.arguments)

    def body(operands: Operands, m: int, n: int, k: int, begin: int, end: int) -> int:
        a, b, c, status = operands.a, operands.b, operands.c, 0
        for i in range(begin, end):
            status = status | product(offset(a, i * m * k), offset(b, i * k * n), offset(c, i * m * n), m, n, k)
        return status

    return range_kernel_of(
        attr,
        f"matmul_batched_{attr.dtype}",
        body,
        extent="batch",
        block=grain(attr.m * attr.n * attr.k, BATCHED_THREAD_MULTIPLY_ADDS) if parallel else 1,
        parallel=parallel,
        exact=pair.exact,
        straight=True,
    )
