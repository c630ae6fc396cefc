"""GEMV by OpenBLAS's ``cblas_?gemv``."""

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.loops.gemv import gemv_arguments, gemv_nest, variants
from jitkernels.loops.pieces import ignore
from jitkernels.more.openblas.library import external, one_thread, reason_against
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


def can_be_used(attr: GEMVAttr) -> bool | str:
    return reason_against(attr.dtype, attr.m, attr.n) or True


@implements(GEMVAttr, can_be_used=can_be_used, variants=variants)
def gemv(attr: GEMVAttr, parallel: bool = False) -> LoopNest:
    name, pointer = ("cblas_sgemv", "float*") if attr.dtype == "float32" else ("cblas_dgemv", "double*")
    product = external(name, "void", *gemv_arguments(pointer, "int32"))
    return gemv_nest(attr, product, one_thread, ignore, parallel)
