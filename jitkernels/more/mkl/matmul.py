"""MATMUL by MKL's ``cblas_?gemm``."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.gemm.blas_gemm import adapt_cblas_gemm, gemm_kernel, variants
from jitkernels.more.mkl.library import external, one_thread, set_threads, usable


@implements(MatMulAttr, can_be_used=usable, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> RangeKernel:
    gemm = external("cblas_sgemm_64" if attr.dtype == "float32" else "cblas_dgemm_64")
    return gemm_kernel(attr, adapt_cblas_gemm(gemm), one_thread, set_threads, parallel, name=gemm.symbol)
