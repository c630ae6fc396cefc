"""Generated MATMUL: register tiles over operands read in place or packed, or dot products."""

from __future__ import annotations

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.gemm_heuristics import Product, blocking, candidates, simplified
from jitkernels.microkernels.gemm.packed_panels import PackedGemm, packed_kernel


def product_of(attr: MatMulAttr) -> Product:
    """Return the matrix product of an attr, in its simplest equivalent form."""
    return simplified(Product(attr.m, attr.n, attr.k, attr.trans_a, attr.trans_b, attr.dtype))


def variants(attr: MatMulAttr) -> list[Variant]:
    """Algorithms and tiles worth measuring for a shape, the static choice first."""
    if attr.dtype == "bfloat16":
        from jitkernels.microkernels.gemm import bf16_matmul

        return bf16_matmul.variants(attr)
    return list(candidates(product_of(attr), cpu_target.target()))


@implements(MatMulAttr, variants=variants)
def matmul(
    attr: MatMulAttr, algorithm: str = "packed", rows: int = 0, vectors: int = 0, columns: int = 0,
    depth: int = 0, parallel: bool = False,
) -> RangeKernel:  # fmt: skip
    """Make ``C = op(A) @ op(B) + beta * C``; a beta of 0 never reads C. Algorithms are imported lazily."""
    if attr.dtype == "bfloat16":
        from jitkernels.microkernels.gemm import bf16_matmul

        return bf16_matmul.bfloat16_nest(attr, algorithm, parallel)
    product = product_of(attr)
    target = cpu_target.target()
    lanes = target.lanes(product.dtype)
    m, n, k, dtype, beta = product.m, product.n, product.k, product.dtype, attr.beta
    longer = "columns" if n >= m else "rows"
    if 0 in (m, n):
        algorithm = "packed"  # its loops have a trip count of zero; a tile of no rows does not exist
    if algorithm == "vector" and 1 in (attr.m, attr.n):
        from jitkernels.microkernels.gemv.gemv_autovectorized import autovectorized_kernel

        return autovectorized_kernel(attr)
    if algorithm == "compact":
        from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_kernel

        return direct_dynamic_kernel(attr, target)
    if algorithm == "any":
        from jitkernels.microkernels.gemm.runtime_select import runtime_select_kernel

        return runtime_select_kernel(attr, target, parallel=parallel)
    if algorithm == "dot":
        from jitkernels.microkernels.gemm.dot_static import DotShape, dot_kernel

        trans_b = product.trans_b or n == 1
        shape = DotShape(dtype, lanes, m, n, k, rows, columns, beta, product.trans_a, trans_b)
        return dot_kernel(shape, parallel=parallel)
    if algorithm == "direct":
        from jitkernels.microkernels.gemm.direct_static import SmallShape, direct_static_kernel

        small = SmallShape(
            dtype, lanes, m, n, k, rows, vectors, depth or max(k, 1), product.trans_a, product.trans_b, beta,
            product.swapped, longer if parallel else "",
        )  # fmt: skip
        if product.swapped and m > 1:
            from jitkernels.microkernels.gemm.transposed_result import transposed_result_kernel

            return transposed_result_kernel(small)
        return direct_static_kernel(small)
    split = "columns" if attr.n >= attr.m else "rows"
    packed = PackedGemm(lanes, blocking(dtype, target), dtype, attr.trans_a, attr.trans_b, beta, split)
    return packed_kernel(packed, parallel=parallel)
