"""GEMV by MKL's ``cblas_?gemv``."""

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.loops.gemv import gemv_arguments, gemv_nest, variants
from jitkernels.more.mkl.library import external, one_thread, set_threads, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import implements


@implements(GEMVAttr, can_be_used=usable, variants=variants)
def gemv(attr: GEMVAttr, parallel: bool = False) -> LoopNest:
    name, pointer = ("cblas_sgemv_64", "float*") if attr.dtype == "float32" else ("cblas_dgemv_64", "double*")
    product = external(name, "void", *gemv_arguments(pointer, "int64"))
    return gemv_nest(attr, product, one_thread, set_threads, parallel)
