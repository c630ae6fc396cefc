"""GEMM by dot products, static shape: a matrix times a vector, or few rows times a transposed matrix.

It serves a skinny C whose operands are both contiguous along ``k``, where packing or transposing would cost more than
the arithmetic.  The extents are compile-time constants, as in `jitkernels.microkernels.gemm.direct_static`.
"""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.gemm_arguments import NAMES, ir_function, matmul_arguments
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.microkernel_column import COLUMN_ARGUMENTS, TileColumn


@frozen_dataclass
class DotShape:
    """One static shape, computed by tiles of at most ``rows x columns`` sums.

    At most one operand may have the other layout (a transposed A, a B that is not transposed): the kernel transposes it
    first, which pays where it is the skinny one.
    """

    dtype: str
    lanes: int
    m: int
    n: int
    k: int
    rows: int
    columns: int
    beta: float
    trans_a: bool = False
    trans_b: bool = True

    @property
    def tall(self) -> int:
        """Rows of a whole tile."""
        return -(-self.m // -(-self.m // self.rows))

    @property
    def wide(self) -> int:
        """Columns of a whole tile."""
        return -(-self.n // -(-self.n // self.columns))


def dot_kernel(shape: DotShape, *, parallel: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``; threads split the longer side of C."""
    m, n, k, wide, by_columns = shape.m, shape.n, shape.k, shape.wide, shape.n >= shape.m
    column, border = _columns(shape)
    whole, trans_a = n - n % wide, shape.trans_a
    has_border, few = whole < n, m if trans_a else n

    @inlined()
    def multiply(a: Any, b: Any, c: Any, begin: int, end: int) -> None:
        high, low = (0, m) if by_columns else (begin, end)
        left, right = (begin, end) if by_columns else (0, n)
        for j in range(left, min(right, whole), wide):
            column(a, 0, b, j * k, c, j, k, 1, high, low)
        if has_border and right > whole:
            border(a, 0, b, whole * k, c, whole, k, 1, high, low)

    def in_place(a: Any, b: Any, c: Any, begin: int, end: int) -> None:
        multiply(a, b, c, begin, end)

    def transposing(a: Any, b: Any, c: Any, workspace: Any, begin: int, end: int) -> None:
        source = a if trans_a else b
        for p in range(k):
            for j in range(few):
                workspace[j * k + p] = source[p * few + j]
        left_operand, right_operand = (workspace, b) if trans_a else (a, workspace)
        multiply(left_operand, right_operand, c, begin, end)

    size = element_size(shape.dtype)
    transposes = trans_a or not shape.trans_b
    return RangeKernel(
        exact=True,
        name="matmul_dot",
        arguments=matmul_arguments(shape.dtype),
        body=transposing if transposes else in_place,
        extent=4 if by_columns else 3,
        block=wide if by_columns else shape.tall,
        parallel=parallel,
        workspace=max(few * k, 1) * size if transposes else 0,
        workspace_dtype=shape.dtype,
        vector_bytes=shape.lanes * size,
        names=NAMES,
    )


def _columns(shape: DotShape) -> tuple[Any, Any]:
    """Return the tile columns of a whole tile's columns of C, and of those that remain at the right border."""
    functions, m, n, k, tall, dtype = [], shape.m, shape.n, shape.k, shape.tall, shape.dtype
    for name, columns in (("inner", shape.wide), ("border", max(n % shape.wide, 1))):
        tiles = [
            DotTile(f"matmul_dot_{name}_{height}", dtype, shape.lanes, height, columns, shape.beta, streams_a=m > n)
            for height in (tall, max(m % tall, 1))
        ]
        column = TileColumn(
            f"matmul_dot_{name}", tiles[0], tiles[1], m - m % tall,
            a_row=k, a_stride=k, b_stride=k, c_stride=n, columns=columns,
        )  # fmt: skip
        functions.append(ir_function(column.symbol, dtype, COLUMN_ARGUMENTS, written_by(TileColumn.text, column)))
    return functions[0], functions[1]
