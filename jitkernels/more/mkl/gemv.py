"""GEMV by MKL's ``cblas_?gemv``."""

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.gemv.blas_gemv import gemv_kernel, variants
from jitkernels.more.mkl.library import external, one_thread, set_threads, usable


@implements(GEMVAttr, can_be_used=usable, variants=variants)
def gemv(attr: GEMVAttr, parallel: bool = False) -> RangeKernel:
    product = external("cblas_sgemv_64" if attr.dtype == "float32" else "cblas_dgemv_64")
    return gemv_kernel(attr, product, one_thread, set_threads, parallel)
