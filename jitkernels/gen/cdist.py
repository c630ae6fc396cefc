"""Generated CDIST: register tiles of differences or products, and what makes distances of them."""

from jitkernels import machine
from jitkernels.attrs.cdist import CDistAttr
from jitkernels.loops.distances import distance_nest, panels_of
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

PARALLEL_WORK = 1 << 18
"""Sums of fewer steps are done before a second thread has helped."""


def variants(attr: CDistAttr) -> list[Variant]:
    target = machine.target()
    panels = panels_of(target)
    share = panels.share * panels.vectors * target.lanes(attr.dtype)
    several = attr.n >= 4 * share and attr.m * attr.n * attr.d >= PARALLEL_WORK
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


@implements(CDistAttr, variants=variants)
def cdist(attr: CDistAttr, parallel: bool = False) -> LoopNest:
    return distance_nest(attr, machine.target(), parallel=parallel)
