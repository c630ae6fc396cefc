"""Generated matrix multiply: tiles in registers, over operands read in place, packed, or as dot products."""

from __future__ import annotations

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.matmul_packed import packed_nest
from jitkernels.loops.matmul_plan import Product, blocking, candidates, simplified
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements


def product_of(attr: MatMulAttr) -> Product:
    """The product that an attr asks for, in its simplest equivalent form."""
    return simplified(Product(attr.m, attr.n, attr.k, attr.trans_a, attr.trans_b, attr.dtype))


def variants(attr: MatMulAttr) -> list[Variant]:
    """Algorithms and tiles worth measuring for a shape, the static choice first."""
    if attr.dtype == "bfloat16":
        from jitkernels.loops import bfloat16_matmul

        return bfloat16_matmul.variants(attr)
    return list(candidates(product_of(attr), machine.target()))


@implements(MatMulAttr, variants=variants)
def matmul(
    attr: MatMulAttr, algorithm: str = "packed", rows: int = 0, vectors: int = 0, columns: int = 0,
    depth: int = 0, parallel: bool = False,
) -> LoopNest:  # fmt: skip
    """``C = op(A) @ op(B) + beta * C``; a beta of 0 never reads C. Algorithms are imported when they are chosen."""
    if attr.dtype == "bfloat16":
        from jitkernels.loops import bfloat16_matmul

        return bfloat16_matmul.bfloat16_nest(attr, algorithm, parallel)
    product = product_of(attr)
    target = machine.target()
    lanes = target.lanes(product.dtype)
    m, n, k, dtype, beta = product.m, product.n, product.k, product.dtype, attr.beta
    longer = "columns" if n >= m else "rows"
    if 0 in (m, n):
        algorithm = "packed"  # its loops run over nothing; a tile of no rows does not exist
    if algorithm == "vector" and 1 in (attr.m, attr.n):
        from jitkernels.loops.matmul_vector import vector_nest

        return vector_nest(attr)
    if algorithm == "compact":
        from jitkernels.loops.matmul_compact import compact_nest

        return compact_nest(attr, target)
    if algorithm == "any":
        from jitkernels.loops.matmul_any_size import any_size_nest

        return any_size_nest(attr, target, parallel=parallel)
    if algorithm == "dot":
        from jitkernels.loops.matmul_dot import dot_nest

        return dot_nest(
            dtype, lanes, m, n, k, rows=rows, columns=columns, beta=beta,
            trans_a=product.trans_a, trans_b=product.trans_b or n == 1, parallel=parallel,
        )  # fmt: skip
    if algorithm == "direct":
        from jitkernels.loops.matmul_small import SmallShape, small_nest

        shape = SmallShape(
            dtype, lanes, m, n, k, rows, vectors, depth or max(k, 1), product.trans_a, product.trans_b, beta,
            product.swapped, longer if parallel else "",
        )  # fmt: skip
        if product.swapped and m > 1:
            from jitkernels.loops.matmul_turned import turned_nest

            return turned_nest(shape)
        return small_nest(shape)
    return packed_nest(
        dtype, lanes, blocking(dtype, target),
        trans_a=attr.trans_a, trans_b=attr.trans_b, beta=beta,
        split="columns" if attr.n >= attr.m else "rows", parallel=parallel,
    )  # fmt: skip
