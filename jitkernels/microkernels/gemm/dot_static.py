"""GEMM by dot products, static shape: a matrix times a vector, or few rows times a transposed matrix.

It serves a skinny C whose operands are both contiguous along ``k``, where packing or transposing would cost more than
the arithmetic.  The extents are compile-time constants, as in `jitkernels.microkernels.gemm.direct_static`.
"""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import written_by
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.microkernel_column import COLUMN_ARGUMENTS, TileColumn
from jitkernels.microkernels.gemm.packed_panels import ir_function, matmul_arguments


def dot_nest(
    dtype: str, lanes: int, m: int, n: int, k: int, *,
    rows: int, columns: int, beta: float, trans_a: bool = False, trans_b: bool = True, parallel: bool = False,
) -> LoopNest:  # fmt: skip
    """Make the loop nest ``(a, b, c, m, n, k)``: tiles of ``rows x columns`` sums.

    At most one operand may have the other layout (a transposed A, a B that is not transposed): the nest transposes it
    first, which pays where it is the skinny one.  Threads split the longer side of C.
    """
    tall = -(-m // -(-m // rows))
    wide = -(-n // -(-n // columns))
    column, border = _columns(dtype, lanes, m, n, k, tall, wide, beta)
    by_columns = n >= m
    whole = n - n % wide
    has_border = whole < n
    thin = m if trans_a else n

    def body(a: Any, b: Any, c: Any, m_: int, n_: int, k_: int, begin: int, end: int) -> None:
        high, low = (0, m) if by_columns else (begin, end)
        left, right = (begin, end) if by_columns else (0, n)
        for j in range(left, min(right, whole), wide):
            column(a, 0, b, j * k, c, j, k, 1, high, low)
        if has_border and right > whole:
            border(a, 0, b, whole * k, c, whole, k, 1, high, low)

    def turning_body(a: Any, b: Any, c: Any, m_: int, n_: int, k_: int, workspace: Any, begin: int, end: int) -> None:
        high, low = (0, m) if by_columns else (begin, end)
        left, right = (begin, end) if by_columns else (0, n)
        source = a if trans_a else b
        for p in range(k):
            for j in range(thin):
                workspace[j * k + p] = source[p * thin + j]
        left_operand, right_operand = (workspace, b) if trans_a else (a, workspace)
        for j in range(left, min(right, whole), wide):
            column(left_operand, 0, right_operand, j * k, c, j, k, 1, high, low)
        if has_border and right > whole:
            border(left_operand, 0, right_operand, whole * k, c, whole, k, 1, high, low)

    size = element_size(dtype)
    turns = trans_a or not trans_b
    return LoopNest(
        exact=True,
        name="matmul_dot",
        arguments=matmul_arguments(dtype),
        body=turning_body if turns else body,
        extent=4 if by_columns else 3,
        block=wide if by_columns else tall,
        parallel=parallel,
        workspace=max(thin * k, 1) * size if turns else 0,
        workspace_dtype=dtype,
        vector_bytes=lanes * size,
    )


def _columns(dtype: str, lanes: int, m: int, n: int, k: int, tall: int, wide: int, beta: float) -> tuple[Any, Any]:
    """Return the tile columns of ``wide`` columns of C and of the columns that remain at the right border."""
    functions = []
    for name, columns in (("inner", wide), ("border", max(n % wide, 1))):
        tiles = [
            DotTile(f"matmul_dot_{name}_{height}", dtype, lanes, height, columns, beta, streams_a=m > n)
            for height in (tall, max(m % tall, 1))
        ]
        column = TileColumn(
            f"matmul_dot_{name}", tiles[0], tiles[1], m - m % tall,
            a_row=k, a_stride=k, b_stride=k, c_stride=n, columns=columns,
        )  # fmt: skip
        functions.append(ir_function(column.symbol, dtype, COLUMN_ARGUMENTS, written_by(TileColumn.text, column)))
    return functions[0], functions[1]
