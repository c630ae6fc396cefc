"""Matrix multiply by dot products: a matrix times a vector, or few rows times a transposed matrix.

Used where ``k`` is contiguous in both operands and C is thin, so that packing or transposing would cost more than
the arithmetic.  Sizes are baked in, as in `jitkernels.gen.matmul_small`.
"""

from __future__ import annotations

from jitkernels.gen.dot_tile import dot_tile
from jitkernels.gen.matmul_packed import ir_function
from jitkernels.gen.tile import TILE_ARGUMENTS, element_size
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import IRFunction


def dot_nest(
    dtype: str, lanes: int, m: int, n: int, k: int, *, rows: int, columns: int, beta: float, parallel: bool = False
) -> LoopNest:
    """The loop nest ``(a, b, c, m, n, k)`` for A of shape [m, k] and B stored as [n, k]; tiles of rows x columns.

    Threads share out the longer side of C.
    """
    tall = -(-m // -(-m // rows))
    wide = -(-n // -(-n // columns))
    tall_rows, short = m - m % tall, m % tall
    wide_columns, narrow = n - n % wide, n % wide

    def tile(symbol: str, height: int, width: int) -> IRFunction:
        text = dot_tile(symbol, dtype, lanes, max(height, 1), max(width, 1), beta)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, text)

    inner, lower = tile("matmul_dot", tall, wide), tile("matmul_dot_lower", short, wide)
    right, corner = tile("matmul_dot_right", tall, narrow), tile("matmul_dot_corner", short, narrow)
    by_columns = n >= m
    has_short, has_narrow = short > 0, narrow > 0

    def body(a, b, c, rows_of_c, columns_of_c, steps, begin, end):  # type: ignore[no-untyped-def]
        top, bottom = (0, m) if by_columns else (begin, end)
        left, border = (begin, end) if by_columns else (0, n)
        for j in range(left, min(border, wide_columns), wide):
            for i in range(top, min(bottom, tall_rows), tall):
                inner(a, i * k, k, b, j * k, k, c, i * n + j, n, k, 1, tall, wide)
            if has_short and bottom > tall_rows:
                lower(a, tall_rows * k, k, b, j * k, k, c, tall_rows * n + j, n, k, 1, short, wide)
        if has_narrow and border > wide_columns:
            for i in range(top, min(bottom, tall_rows), tall):
                right(a, i * k, k, b, wide_columns * k, k, c, i * n + wide_columns, n, k, 1, tall, narrow)
            if has_short and bottom > tall_rows:
                corner(
                    a, tall_rows * k, k, b, wide_columns * k, k,
                    c, tall_rows * n + wide_columns, n, k, 1, short, narrow,
                )  # fmt: skip

    pointer = {"float32": "float*", "float64": "double*"}[dtype]
    return LoopNest(
        name="matmul_dot",
        arguments=(pointer, pointer, pointer, "int64", "int64", "int64"),
        body=body,
        extent=4 if by_columns else 3,
        block=wide if by_columns else tall,
        parallel=parallel,
        vector_bytes=lanes * element_size(dtype),
    )
