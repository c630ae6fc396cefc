"""Skinny GEMM, dynamic shape: a C with few rows or few columns; the long operand is read once, in place.

A C of few columns is the transpose of a C of few rows, with the operands exchanged, so the text speaks of few rows
only. Where the long operand is contiguous along k, elements of C are dot products; otherwise vectors run along the rows
of C.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, element_size
from jitkernels.microkernels.gemm.packed_panels import ir_function, matmul_arguments
from jitkernels.microkernels.gemm.packing import TRANSPOSE_ARGUMENTS, transpose_columns
from jitkernels.microkernels.gemm.skinny_direct import rows_across

TURNED_BYTES = 16384
"""Bytes of the short operand that is transposed to be contiguous along k: half of a first-level cache."""
TOGETHER = 32
"""Rows of it per pass."""
BLOCK = 64
"""Half of the least number of rows or columns of C per thread."""


def skinny_nest(
    attr: MatMulAttr, target: Target, *, columns: bool, parallel: bool = False
) -> LoopNest:  # fmt: skip
    """Make the loop nest ``(a, b, c, m, n, k)`` for a C of few rows, or of few `columns`."""
    trans_a, trans_b = attr.trans_a, attr.trans_b
    if columns:
        trans_a, trans_b = not trans_b, not trans_a
    size = element_size(attr.dtype)
    body, workspace = (_dots if trans_b else _across)(attr, target, trans_a, columns)
    return LoopNest(
        name="matmul_thin",
        arguments=matmul_arguments(attr.dtype),
        body=body,
        extent=3 if columns else 4,
        block=BLOCK,
        parallel=parallel,
        workspace=workspace * size,
        workspace_dtype=attr.dtype,
        vector_bytes=target.lanes(attr.dtype) * size,
        straight=True,
    )


def _dots(attr: MatMulAttr, target: Target, trans_a: bool, columns: bool) -> tuple[Callable[..., None], int]:
    """Make the body for a long operand that is contiguous along k, as the short one is once it is transposed."""
    dtype, lanes = attr.dtype, target.lanes(attr.dtype)
    max_rows, swapped = (4 if target.registers == 32 else 2), columns
    together = TOGETHER
    scratch_elements = TURNED_BYTES // element_size(dtype) if trans_a else 0

    def tile(rows: int, columns: int) -> Any:
        symbol = f"matmul_dot{rows}_{columns}"
        tile_text = DotTile(symbol, dtype, lanes, rows, columns, attr.beta, streams_a=False, transposed_c=swapped)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(DotTile.text, tile_text))

    four = [tile(rows, 4) for rows in range(1, max_rows + 1)]
    single = [tile(rows, 1) for rows in range(1, max_rows + 1)]

    def chosen(tiles: list[Any]) -> Any:
        one, two, three, whole = tiles[0], tiles[1], tiles[-2], tiles[-1]

        @inlined()
        def of_rows(
            a: Any, from_a: int, a_stride: int, b: Any, from_b: int, b_stride: int,
            c: Any, at: int, c_stride: int, k: int, first: int, high: int,
        ) -> None:  # fmt: skip
            if high >= max_rows:
                whole(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            elif high == 3:
                three(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            elif high == 2:
                two(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)
            else:
                one(a, from_a, a_stride, b, from_b, b_stride, c, at, c_stride, k, first, 0, 0)

        return of_rows

    of_four, of_one, turn = chosen(four), chosen(single), transpose_few_columns(dtype, lanes)

    @inlined()
    def block(
        a: Any, a_stride: int, b: Any, p: int, c: Any, c_stride: int,
        top: int, bottom: int, k: int, deep: int, first: int, begin: int, end: int,
    ) -> None:  # fmt: skip
        """Compute rows `top` to `bottom` of the rows in C; A begins with the first of them."""
        j = begin
        while j < end:
            wide = 4 if end - j >= 4 else 1
            for r in range(top, bottom, max_rows):
                at = j * c_stride + r if swapped else r * c_stride + j
                row = (r - top) * a_stride
                if wide == 4:
                    of_four(a, row, a_stride, b, j * k + p, k, c, at, c_stride, deep, first, bottom - r)
                else:
                    of_one(a, row, a_stride, b, j * k + p, k, c, at, c_stride, deep, first, bottom - r)
            j += wide

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        few, long = (n, m) if swapped else (m, n)
        left, right = (b, a) if swapped else (a, b)
        block(left, k, right, 0, c, few if swapped else long, 0, few, k, k, 1, begin, end)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        few, long = (n, m) if swapped else (m, n)
        left, right = (b, a) if swapped else (a, b)
        for top in range(0, few, together):
            rows = min(together, few - top)
            depth = scratch_elements // rows // lanes * lanes
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                turn(left, p * few + top, few, workspace, depth, rows, deep)
                first = 1 if p == 0 else 0
                block(
                    workspace, depth, right, p, c, few if swapped else long, top, top + rows,
                    k, deep, first, begin, end,
                )  # fmt: skip

    return (turning if trans_a else plain), scratch_elements


def transpose_few_columns(dtype: str, lanes: int) -> Any:
    """Make the function that writes the few columns of some rows of an operand as rows, that is transposed."""

    def apart(few: int) -> Any:
        return ir_function(
            f"matmul_apart{few}",
            dtype,
            TRANSPOSE_ARGUMENTS,
            written_by(transpose_columns, f"matmul_apart{few}", dtype, lanes, few),
        )

    of_two, of_three, of_four = apart(2), apart(3), apart(4)

    @inlined()
    def turn(source: Any, start: int, stride: int, target: Any, depth: int, few: int, count: int) -> None:
        """``target[r * depth + q] = source[start + q * stride + r]`` for r < few, q < count."""
        q = 0
        if few == stride:
            whole = count // lanes
            if few == 2:
                of_two(source, start, target, depth, whole)
                q = whole * lanes
            elif few == 3:
                of_three(source, start, target, depth, whole)
                q = whole * lanes
            elif few == 4:
                of_four(source, start, target, depth, whole)
                q = whole * lanes
        while q < count:
            for r in range(few):
                target[r * depth + q] = source[start + q * stride + r]
            q += 1

    return turn


def _across(attr: MatMulAttr, target: Target, trans_a: bool, columns: bool) -> tuple[Callable[..., None], int]:
    """Make the body for a long operand that is strided along k: vectors of it are rows of C, or of its transpose."""
    dtype, beta = attr.dtype, attr.beta
    across = rows_across(dtype, target, 0.0 if columns else beta, by_column=trans_a)
    number: Any = dtypes.named(dtype).numpy.type
    keeps, scale = beta != 0, number(beta)
    panel = 4 * BLOCK

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        across(a, 0, m if trans_a else k, b, 0, n, c, 0, n, m, k, 1, begin, end)

    def turning(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        for i in range(begin, end, panel):
            wide = min(panel, end - i)
            for r in range(0, n, 4):
                high = min(4, n - r)
                row = r if trans_a else r * k
                across(b, row, n if trans_a else k, a, i, m, workspace, 0, panel, high, k, 1, 0, wide)
                for s in range(wide):
                    for q in range(high):
                        at = (i + s) * n + r + q
                        value = workspace[q * panel + s]
                        c[at] = value + scale * c[at] if keeps else value

    return (turning, 4 * panel) if columns else (plain, 0)
