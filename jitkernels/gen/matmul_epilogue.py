"""Generated MATMUL_EPILOGUE: products that hand their rows on, and small ones whose result is in the cache anyway."""

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.gen import matmul as product
from jitkernels.loops.epilogue import exact_nest, followed_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

SMALL = 1 << 16
"""Elements of a result that stays in the cache by itself."""


def pair_of(attr: MatMulEpilogueAttr) -> MatMulAttr:
    """The product alone."""
    return MatMulAttr(
        m=attr.m, n=attr.n, k=attr.k, trans_a=attr.trans_a, trans_b=attr.trans_b, dtype=attr.dtype
    )


def variants(attr: MatMulEpilogueAttr) -> list[Variant]:
    """Code for these sizes where they are small, and for all; in parallel first, as products are."""
    shares = (True, False) if attr.m * attr.n * attr.k >= PARALLEL_WORK else (False,)
    found: list[Variant] = [{"algorithm": "any", "parallel": parallel} for parallel in shares]
    if 0 < attr.m * attr.n <= SMALL:
        return [{"algorithm": "exact", "parallel": False}, *found]
    return found


@implements(MatMulEpilogueAttr, variants=variants)
def matmul_epilogue(attr: MatMulEpilogueAttr, algorithm: str = "any", parallel: bool = False) -> LoopNest:
    pair = pair_of(attr)
    if algorithm == "exact":
        chosen = next(v for v in product.variants(pair) if not v.get("parallel"))
        return exact_nest(attr, product.matmul(pair, **chosen))
    return followed_nest(attr, pair, machine.target(), parallel=parallel)
