"""MATMUL by MKL's ``cblas_?gemm``."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.gemm import gemm_arguments, gemm_nest, of_cblas, variants
from jitkernels.more.mkl.library import external, one_thread, set_threads, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(MatMulAttr, can_be_used=usable, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> LoopNest:
    name, pointer = ("cblas_sgemm_64", "float*") if attr.dtype == "float32" else ("cblas_dgemm_64", "double*")
    gemm = external(name, "void", *gemm_arguments(pointer, "int64"))
    return gemm_nest(attr, of_cblas(gemm), one_thread, set_threads, parallel, name=gemm.symbol)
