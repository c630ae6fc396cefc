"""GEMV by OpenBLAS's ``cblas_?gemv``."""

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.chunking import no_teardown
from jitkernels.microkernels.gemv.blas_gemv import gemv_kernel, variants
from jitkernels.more.openblas.library import external, one_thread, reason_against


def can_be_used(attr: GEMVAttr) -> bool | str:
    return reason_against(attr.dtype, attr.m, attr.n) or True


@implements(GEMVAttr, can_be_used=can_be_used, variants=variants)
def gemv(attr: GEMVAttr, parallel: bool = False) -> RangeKernel:
    product = external("cblas_sgemv" if attr.dtype == "float32" else "cblas_dgemv")
    return gemv_kernel(attr, product, one_thread, no_teardown, parallel)
