"""Generated CDIST: register tiles of differences or products, with an epilogue that finishes the distances."""

from jitkernels.attrs.cdist import CDistAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.pairwise_distance import distance_kernel, panels_of

MIN_PARALLEL_OPERATIONS = 1 << 18
"""Sums of fewer steps end before a second thread has helped."""


def variants(attr: CDistAttr) -> list[Variant]:
    target = cpu_target.target()
    panels = panels_of(target)
    share = panels.share * panels.vectors * target.lanes(attr.dtype)
    several = attr.n >= 4 * share and attr.m * attr.n * attr.d >= MIN_PARALLEL_OPERATIONS
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


@implements(CDistAttr, variants=variants)
def cdist(attr: CDistAttr, parallel: bool = False) -> RangeKernel:
    return distance_kernel(attr, cpu_target.target(), parallel=parallel)
