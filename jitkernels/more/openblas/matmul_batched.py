"""MATMUL_BATCHED by OpenBLAS's ``cblas_?gemm``, pair by pair."""

from jitkernels.attrs.matmul_batched import MatMulBatchedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.gemm.batched import batched_kernel, pair_of
from jitkernels.more.openblas import matmul


def can_be_used(attr: MatMulBatchedAttr) -> bool | str:
    return matmul.can_be_used(pair_of(attr))


@implements(MatMulBatchedAttr, can_be_used=can_be_used)
def matmul_batched(attr: MatMulBatchedAttr) -> RangeKernel:
    return batched_kernel(attr, matmul.matmul(pair_of(attr)), parallel=False)
