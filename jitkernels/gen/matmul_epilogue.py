"""Generated MATMUL_EPILOGUE: GEMMs that hand their rows to the epilogue, and small ones with an epilogue behind."""

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.gen import matmul as product
from jitkernels.microkernels.epilogue.bias_activation import gemm_epilogue_kernel, static_gemm_epilogue_kernel
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS

MAX_CACHED_ELEMENTS = 1 << 16
"""Up to so many elements, a result stays in the cache by itself."""


def pair_of(attr: MatMulEpilogueAttr) -> MatMulAttr:
    """Return the product without its epilogue."""
    return MatMulAttr(m=attr.m, n=attr.n, k=attr.k, trans_a=attr.trans_a, trans_b=attr.trans_b, dtype=attr.dtype)


def variants(attr: MatMulEpilogueAttr) -> list[Variant]:
    """List code for static shapes where they are small, and for dynamic ones; parallel first, as for products."""
    shares = (True, False) if attr.m * attr.n * attr.k >= MIN_PARALLEL_STATIC_MULTIPLY_ADDS else (False,)
    result: list[Variant] = [{"algorithm": "any", "parallel": parallel} for parallel in shares]
    if 0 < attr.m * attr.n <= MAX_CACHED_ELEMENTS:
        return [{"algorithm": "exact", "parallel": False}, *result]
    return result


@implements(MatMulEpilogueAttr, variants=variants)
def matmul_epilogue(attr: MatMulEpilogueAttr, algorithm: str = "any", parallel: bool = False) -> RangeKernel:
    pair = pair_of(attr)
    if algorithm == "exact":
        chosen = next(v for v in product.variants(pair) if not v.get("parallel"))
        return static_gemm_epilogue_kernel(attr, product.matmul(pair, **chosen))
    return gemm_epilogue_kernel(attr, pair, cpu_target.target(), parallel=parallel)
