"""MATMUL by OpenBLAS's ``cblas_?gemm``."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.gemm import gemm_arguments, gemm_nest, of_cblas, variants
from jitkernels.loops.pieces import ignore
from jitkernels.more.openblas.library import external, one_thread, reason_against
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


def can_be_used(attr: MatMulAttr) -> bool | str:
    return reason_against(attr.dtype, attr.m, attr.n, attr.k) or True


@implements(MatMulAttr, can_be_used=can_be_used, variants=variants)
def matmul(attr: MatMulAttr, parallel: bool = False) -> LoopNest:
    name, pointer = ("cblas_sgemm", "float*") if attr.dtype == "float32" else ("cblas_dgemm", "double*")
    gemm = external(name, "void", *gemm_arguments(pointer, "int32"))
    return gemm_nest(attr, of_cblas(gemm), one_thread, ignore, parallel, name=gemm.symbol)
