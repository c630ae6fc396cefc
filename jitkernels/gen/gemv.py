"""Generated GEMV: MATMUL's skinny kernels for a right operand of one column."""

from dataclasses import replace
from typing import Any

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target, dtypes
from jitkernels.gen import matmul as product
from jitkernels.microkernels.gemm.skinny import HALF_MIN_SKINNY_EXTENT, skinny_kernel
from jitkernels.microkernels.gemv.bf16_gemv import gemv_kernel
from jitkernels.microkernels.gemv.bf16_sums import WIDENED, algorithms
from jitkernels.microkernels.gemv.gemv_autovectorized import autovectorized_kernel
from jitkernels.microkernels.gemv.gemv_n_streaming import ABREAST, GEMV_ROWS, gemv_n_body
from jitkernels.microkernels.gemv.gemv_t_streaming import gemv_t_body
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED
from jitkernels.runtime.loading import loader

MIN_PARALLEL_ELEMENTS = 128 * 1024
"""Least elements of the matrix for which a second thread helps."""
EXACT = ("dot", "direct")
"""Algorithms of MATMUL that are compiled for static shapes."""
MIN_FOUR_ROWS_BYTES, MIN_FOUR_ROWS_STRIDED_BYTES = 14 << 10, 512
"""Least bytes of a row, contiguous or strided along the sum, for which four rows at a time are faster. Autovectorized
loops take shorter rows one after another, as the one stream that hardware prefetchers follow; longer ones fill a
first-level cache, together with as much of the vector.
"""
MIN_STRIDED_RESULTS = 32
"""Least elements of a result for which autovectorized loops are faster where rows are strided along the sum."""
MAX_VECTORIZED_ROW = 8
"""Up to so many elements per row, autovectorized loops are faster as well."""
MAX_STATIC_ELEMENTS = 1 << 14
"""Up to so many elements of the matrix, code for the static shape is worth measuring."""


def product_of(attr: GEMVAttr) -> MatMulAttr:
    """Return the equivalent matrix product."""
    return MatMulAttr(m=attr.m, n=1, k=attr.n, trans_a=attr.trans, beta=attr.beta, dtype=attr.dtype)


def variants(attr: GEMVAttr) -> list[Variant]:
    """List tiles of rows and autovectorized loops; code for the static shape where it is small.

    A tile has several vectors of rows, which few rows leave empty, and transposes short rows: where those are
    contiguous, the loops come first.
    """
    shares = (
        (False, True) if attr.m * attr.n >= MIN_PARALLEL_ELEMENTS and attr.m >= 4 * HALF_MIN_SKINNY_EXTENT else (False,)
    )
    matrix, vector = attr.signature().arrays[:2]
    streamed = matrix.nbytes >= STREAMED
    across = streamed and attr.trans and matrix.nbytes >= attr.n * MIN_FOUR_ROWS_STRIDED_BYTES
    if attr.dtype == "bfloat16":
        names = (ABREAST, WIDENED) if across else (WIDENED,) if attr.trans else algorithms()
        return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]
    few = attr.m == 1 or (
        not attr.trans and (attr.m <= 2 * cpu_target.target().lanes(attr.dtype) or attr.n <= MAX_VECTORIZED_ROW)
    )
    loops_first = few or (attr.trans and attr.m >= MIN_STRIDED_RESULTS) or streamed
    by_rows: tuple[str, ...] = ("vector", "thin") if loops_first else ("thin", "vector")
    along = streamed and not attr.trans and vector.nbytes >= MIN_FOUR_ROWS_BYTES
    if across or (along and attr.m >= GEMV_ROWS):
        by_rows = (ABREAST, *by_rows)
    result: list[Variant] = [
        {"algorithm": algorithm, "parallel": parallel} for parallel in shares for algorithm in by_rows
    ]
    if 0 < attr.m * attr.n <= MAX_STATIC_ELEMENTS and product.variants(product_of(attr))[0]["algorithm"] in EXACT:
        result.append({"algorithm": "exact", "parallel": False})
    return result


@implements(GEMVAttr, variants=variants)
def gemv(attr: GEMVAttr, algorithm: str = "thin", parallel: bool = False) -> RangeKernel:
    if attr.dtype == "bfloat16":
        return gemv_kernel(attr, algorithm, parallel)
    if algorithm == ABREAST and attr.trans:
        return _range_kernel(attr, gemv_t_body(attr.dtype, attr.beta), parallel)
    if algorithm == ABREAST:
        rows, size = gemv_n_body(attr.dtype, attr.beta, cpu_target.target()), dtypes.named(attr.dtype).size
        return _range_kernel(attr, rows, parallel, workspace=GEMV_ROWS * size, workspace_dtype=attr.dtype)
    of_matrices = product_of(attr)
    if algorithm == "exact":
        kernel = product.matmul(of_matrices, **product.variants(of_matrices)[0])
    elif algorithm == "thin":
        kernel = skinny_kernel(
            replace(of_matrices, trans_b=True), cpu_target.target(), columns=True
        )  # x is contiguous along the sum
    else:
        kernel = autovectorized_kernel(replace(of_matrices, m=2))  # a single row would hide the layout of the matrix
    part = loader.range_of(kernel, kernel.arguments)

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> Any:
        return part(a, x, y, m, 1, n, begin, end)

    def whole(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> Any:
        return part(a, x, y, m, 1, n, 0, m)

    chosen = whole if algorithm == "exact" else body
    return _range_kernel(attr, chosen, parallel, exact=kernel.exact, straight=True)


def _range_kernel(attr: GEMVAttr, body: Any, parallel: bool, **more: Any) -> RangeKernel:
    return range_kernel_of(
        attr, f"gemv_{attr.dtype}", body, extent="m", block=HALF_MIN_SKINNY_EXTENT, parallel=parallel, **more
    )
