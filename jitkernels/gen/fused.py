"""Generated fused expressions: one loop nest, in variants that the tuner chooses from."""

from jitkernels.attrs.fused import FusedAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.compiler.api import traced_kernel


def variants(attr: FusedAttr) -> list[Variant]:
    """Return the static choice."""
    result = traced_kernel.variants_along(attr, attr.computes.along)
    return sorted(result, key=lambda variant: variant["unroll"] != attr.computes.unroll)


@implements(FusedAttr, variants=variants)
def fused(
    attr: FusedAttr, unroll: int = 2, vector_bytes: int = 64, stream: bool = False, parallel: bool = False
) -> RangeKernel:
    computes = attr.computes
    key = [
        computes.text,
        f"; traced with {computes.traced}, along {computes.along}",
        f"; {unroll} vectors at once{', streaming stores' if stream else ''}",
    ]

    def make(_: object) -> str:
        return computes.body(vector_bytes, unroll, stream)

    return traced_kernel.range_kernel_along(attr, computes.along, key, make, vector_bytes, parallel=parallel)
