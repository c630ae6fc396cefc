"""MATMUL by OpenBLAS's ``cblas_?gemm``."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import no_teardown
from jitkernels.microkernels.gemm.blas_gemm import adapt_cblas_gemm, gemm_kernel, variants
from jitkernels.more.openblas.library import external, one_thread, reason_against


def can_be_used(attr: MatMulAttr) -> bool | str:
    return reason_against(attr.dtype, attr.m, attr.n, attr.k) or True


@implements(MatMulAttr, can_be_used=can_be_used, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> RangeKernel:
    gemm = external("cblas_sgemm" if attr.dtype == "float32" else "cblas_dgemm")
    return gemm_kernel(attr, adapt_cblas_gemm(gemm), one_thread, no_teardown, parallel, name=gemm.symbol)
