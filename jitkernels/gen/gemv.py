"""Generated GEMV: the thin products of MATMUL, whose second factor has one column."""

from dataclasses import replace
from typing import Any

from jitkernels import dtypes, machine
from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.gen import matmul as product
from jitkernels.loops.bfloat16_gemv import gemv_nest
from jitkernels.loops.bfloat16_sums import WIDENED, algorithms
from jitkernels.loops.gemv_columns import four_across
from jitkernels.loops.gemv_rows import ABREAST, ROWS, four_rows
from jitkernels.loops.int4_writer import STREAMED
from jitkernels.loops.matmul_thin import BLOCK, thin_nest
from jitkernels.loops.matmul_vector import vector_nest
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

PARALLEL_WORK = 128 * 1024
"""Elements of the matrix from which on a second thread helps."""
EXACT = ("dot", "direct")
"""Algorithms of MATMUL whose code is made for some sizes."""
ROW_BYTES, ACROSS_BYTES = 14 << 10, 512
"""Of a row along and across the sum from which on four at a time are ahead. Loops take shorter ones along it one after
another, as the one stream that a processor foresees; longer ones fill a first-level cache, with as much of the vector.
"""
LONG = 32
"""Elements of a result from which on loops that LLVM makes vectors of are ahead where rows lie across the sum."""
SHORT = 8
"""Elements of a row up to which the loops are ahead as well."""
SMALL = 1 << 14
"""Elements of a matrix for whose sizes alone code is worth measuring."""


def product_of(attr: GEMVAttr) -> MatMulAttr:
    """The product of matrices that it is."""
    return MatMulAttr(m=attr.m, n=1, k=attr.n, trans_a=attr.trans, beta=attr.beta, dtype=attr.dtype)


def variants(attr: GEMVAttr) -> list[Variant]:
    """Tiles of rows, and loops that LLVM makes vectors of; code for these sizes where they are small.

    A tile has several vectors of rows, which few rows leave empty, and turns round what short rows have: for these,
    where they lie one after another, the loops come first.
    """
    shares = (False, True) if attr.m * attr.n >= PARALLEL_WORK and attr.m >= 4 * BLOCK else (False,)
    matrix, vector = attr.signature().arrays[:2]
    streamed = matrix.nbytes >= STREAMED
    across = streamed and attr.trans and matrix.nbytes >= attr.n * ACROSS_BYTES
    if attr.dtype == "bfloat16":
        names = (ABREAST, WIDENED) if across else (WIDENED,) if attr.trans else algorithms()
        return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]
    few = attr.m == 1 or (
        not attr.trans and (attr.m <= 2 * machine.target().lanes(attr.dtype) or attr.n <= SHORT)
    )
    loops_first = few or (attr.trans and attr.m >= LONG) or streamed
    by_rows: tuple[str, ...] = ("vector", "thin") if loops_first else ("thin", "vector")
    along = streamed and not attr.trans and vector.nbytes >= ROW_BYTES
    if across or (along and attr.m >= ROWS):
        by_rows = (ABREAST, *by_rows)
    found: list[Variant] = [
        {"algorithm": algorithm, "parallel": parallel} for parallel in shares for algorithm in by_rows
    ]
    if 0 < attr.m * attr.n <= SMALL and product.variants(product_of(attr))[0]["algorithm"] in EXACT:
        found.append({"algorithm": "exact", "parallel": False})
    return found


@implements(GEMVAttr, variants=variants)
def gemv(attr: GEMVAttr, algorithm: str = "thin", parallel: bool = False) -> LoopNest:
    if attr.dtype == "bfloat16":
        return gemv_nest(attr, algorithm, parallel)
    if algorithm == ABREAST and attr.trans:
        return _nest(attr, four_across(attr.dtype, attr.beta), parallel)
    if algorithm == ABREAST:
        rows, size = four_rows(attr.dtype, attr.beta, machine.target()), dtypes.named(attr.dtype).size
        return _nest(attr, rows, parallel, workspace=ROWS * size, workspace_dtype=attr.dtype)
    of_matrices = product_of(attr)
    if algorithm == "exact":
        nest = product.matmul(of_matrices, **product.variants(of_matrices)[0])
    elif algorithm == "thin":
        nest = thin_nest(
            replace(of_matrices, trans_b=True), machine.target(), columns=True
        )  # x lies along the sum
    else:
        nest = vector_nest(replace(of_matrices, m=2))  # of one row it would not matter how the matrix lies
    part = load.range_of(nest, nest.arguments)

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> Any:
        return part(a, x, y, m, 1, n, begin, end)

    def whole(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> Any:
        return part(a, x, y, m, 1, n, 0, m)

    chosen = whole if algorithm == "exact" else body
    return _nest(attr, chosen, parallel, exact=nest.exact, straight=True)


def _nest(attr: GEMVAttr, body: Any, parallel: bool, **more: Any) -> LoopNest:
    signature = attr.signature()
    return LoopNest(
        f"gemv_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("m"),
        block=BLOCK,
        parallel=parallel,
        **more,
    )
