"""Generated fused expressions: one loop nest, in variants that the tuner chooses from."""

from jitkernels import from_reference
from jitkernels.attrs.fused import FusedAttr
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements


def variants(attr: FusedAttr) -> list[Variant]:
    """The choice that is made without measuring first."""
    found = from_reference.variants_along(attr, attr.computes.along)
    return sorted(found, key=lambda variant: variant["unroll"] != attr.computes.unroll)


@implements(FusedAttr, variants=variants)
def fused(
    attr: FusedAttr, unroll: int = 2, vector_bytes: int = 64, stream: bool = False, parallel: bool = False
) -> LoopNest:
    computes = attr.computes
    key = [
        computes.text,
        f"; traced with {computes.traced}, along {computes.along}",
        f"; {unroll} vectors at once{', past the caches' if stream else ''}",
    ]

    def make(_: object) -> str:
        return computes.body(vector_bytes, unroll, stream)

    return from_reference.nest_along(attr, computes.along, key, make, vector_bytes, parallel=parallel)
