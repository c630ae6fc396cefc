"""Skinny GEMM, dynamic shape: a C with few rows or few columns; the long operand is read once, in place.

A C of few columns is the transpose of a C of few rows, with the operands exchanged, so the text speaks of few rows
only. Where the long operand is contiguous along k, elements of C are dot products; otherwise vectors run along the rows
of C.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, written_by
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    GemmExtents,
    MatrixPart,
    Operands,
    ir_function,
    matmul_arguments,
    moved,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, element_size
from jitkernels.microkernels.gemm.packing import TRANSPOSE_ARGUMENTS, transpose_columns
from jitkernels.microkernels.gemm.skinny_direct import rows_across
from jitkernels.microkernels.gemm.thresholds import TRANSPOSED_OPERAND_BYTES

ROWS_PER_PASS = 32
"""Rows of it per pass."""
HALF_MIN_SKINNY_EXTENT = 64
"""Half of the least number of rows or columns of C per thread."""


def skinny_kernel(
    attr: MatMulAttr, target: Target, *, columns: bool, parallel: bool = False
) -> RangeKernel:  # fmt: skip
    """Make the range kernel ``(a, b, c, m, n, k)`` for a C of few rows, or of few `columns`."""
    trans_a, trans_b = attr.trans_a, attr.trans_b
    if columns:
        trans_a, trans_b = not trans_b, not trans_a
    size = element_size(attr.dtype)
    body, workspace = (_dots if trans_b else _across)(attr, target, trans_a, columns)
    return RangeKernel(
        name="matmul_skinny",
        arguments=matmul_arguments(attr.dtype),
        body=body,
        extent=3 if columns else 4,
        block=HALF_MIN_SKINNY_EXTENT,
        parallel=parallel,
        workspace=workspace * size,
        workspace_dtype=attr.dtype,
        vector_bytes=target.lanes(attr.dtype) * size,
        straight=True,
        names=NAMES,
    )


def _tiles(attr: MatMulAttr, target: Target, columns: int, *, transposed_c: bool) -> Any:
    """Make ``(a, b, c, k, first, high)``: dot products of at most as many rows as a tile has with some `columns`."""
    most = max_rows(target)

    def tile(rows: int) -> Any:
        symbol, lanes = f"matmul_dot{rows}_{columns}", target.lanes(attr.dtype)
        text = DotTile(symbol, attr.dtype, lanes, rows, columns, attr.beta, streams_a=False, transposed_c=transposed_c)
        return ir_function(symbol, attr.dtype, TILE_ARGUMENTS, written_by(DotTile.text, text))

    tiles = [tile(rows) for rows in range(1, most + 1)]
    of_one, of_two, of_three, of_most = tiles[0], tiles[1], tiles[-2], tiles[-1]

    @inlined()
    def of_rows(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, high: int) -> None:
        if high >= most:
            of_most(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, 0, 0)
        elif high == 3:
            of_three(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, 0, 0)
        elif high == 2:
            of_two(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, 0, 0)
        else:
            of_one(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, 0, 0)

    return of_rows


def max_rows(target: Target) -> int:
    """Return the rows of a dot-product tile of four columns."""
    return 4 if target.registers == 32 else 2


def _block(attr: MatMulAttr, target: Target, *, transposed_c: bool) -> Any:
    """Make ``(a, b, c, rows, deep, first, part)``: some rows of c, of which a begins with the first, in part."""
    of_four, of_one = (_tiles(attr, target, columns, transposed_c=transposed_c) for columns in (4, 1))
    most = max_rows(target)

    @inlined()
    def block(a: MatrixPart, b: MatrixPart, c: MatrixPart, rows: Range, deep: int, first: int, part: Range) -> None:
        j = part.begin
        while j < part.end:
            wide = 4 if part.end - j >= 4 else 1
            for r in range(rows.begin, rows.end, most):
                to = MatrixPart(c.data, j * c.stride + r if transposed_c else r * c.stride + j, c.stride)
                row, column = moved(a, (r - rows.begin) * a.stride), MatrixPart(b.data, j * b.stride + b.at, b.stride)
                if wide == 4:
                    of_four(row, column, to, deep, first, rows.end - r)
                else:
                    of_one(row, column, to, deep, first, rows.end - r)
            j += wide

    return block


def _dots(attr: MatMulAttr, target: Target, trans_a: bool, columns: bool) -> tuple[Callable[..., None], int]:
    """Make the body for a long operand that is contiguous along k, as the short one is once it is transposed."""
    lanes, swapped, together = target.lanes(attr.dtype), columns, ROWS_PER_PASS
    scratch_elements = TRANSPOSED_OPERAND_BYTES // element_size(attr.dtype) if trans_a else 0
    block, transpose = _block(attr, target, transposed_c=swapped), transpose_few_columns(attr.dtype, lanes)

    def in_place(operands: Operands, extents: GemmExtents, part: Range) -> None:
        few, long = (extents.n, extents.m) if swapped else (extents.m, extents.n)
        left, right = (operands.b, operands.a) if swapped else (operands.a, operands.b)
        k, c = extents.k, MatrixPart(operands.c, 0, few if swapped else long)
        block(MatrixPart(left, 0, k), MatrixPart(right, 0, k), c, Range(0, few), k, 1, part)

    def transposing(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> None:
        few, long = (extents.n, extents.m) if swapped else (extents.m, extents.n)
        left, right = (operands.b, operands.a) if swapped else (operands.a, operands.b)
        k, c = extents.k, MatrixPart(operands.c, 0, few if swapped else long)
        for top in range(0, few, together):
            rows = min(together, few - top)
            depth = scratch_elements // rows // lanes * lanes
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                transpose(MatrixPart(left, p * few + top, few), workspace, depth, rows, deep)
                first = 1 if p == 0 else 0
                block(
                    MatrixPart(workspace, 0, depth),
                    MatrixPart(right, p, k),
                    c,
                    Range(top, top + rows),
                    deep,
                    first,
                    part,
                )

    return (transposing if trans_a else in_place), scratch_elements


def transpose_few_columns(dtype: str, lanes: int) -> Any:
    """Make the function that writes the few columns of some rows of an operand as rows, that is transposed."""

    def transpose_of(few: int) -> Any:
        symbol = f"matmul_transpose{few}"
        text = written_by(transpose_columns, symbol, dtype, lanes, few)
        return ir_function(symbol, dtype, TRANSPOSE_ARGUMENTS, text)

    of_two, of_three, of_four = transpose_of(2), transpose_of(3), transpose_of(4)

    @inlined()
    def transpose(source: MatrixPart, target: Any, depth: int, few: int, count: int) -> None:
        """``target[r * depth + q] = source[q, r]`` for r < few, q < count."""
        q = 0
        if few == source.stride:
            whole = count // lanes
            if few == 2:
                of_two(source.data, source.at, target, depth, whole)
                q = whole * lanes
            elif few == 3:
                of_three(source.data, source.at, target, depth, whole)
                q = whole * lanes
            elif few == 4:
                of_four(source.data, source.at, target, depth, whole)
                q = whole * lanes
        while q < count:
            for r in range(few):
                target[r * depth + q] = source.data[source.at + q * source.stride + r]
            q += 1

    return transpose


def _across(attr: MatMulAttr, target: Target, trans_a: bool, columns: bool) -> tuple[Callable[..., None], int]:
    """Make the body for a long operand that is strided along k: vectors of it are rows of C, or of its transpose."""
    dtype, beta = attr.dtype, attr.beta
    across = rows_across(dtype, target, 0.0 if columns else beta, by_column=trans_a)
    number: Any = dtypes.named(dtype).numpy.type
    keeps, scale = beta != 0, number(beta)
    panel = 4 * HALF_MIN_SKINNY_EXTENT

    def in_place(operands: Operands, extents: GemmExtents, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        a = MatrixPart(operands.a, 0, m if trans_a else k)
        across(a, MatrixPart(operands.b, 0, n), MatrixPart(operands.c, 0, n), m, k, 1, part)

    def transposing(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> None:
        m, n, k, c = extents.m, extents.n, extents.k, operands.c
        for i in range(part.begin, part.end, panel):
            wide = min(panel, part.end - i)
            for r in range(0, n, 4):
                high = min(4, n - r)
                row = MatrixPart(operands.b, r if trans_a else r * k, n if trans_a else k)
                across(row, MatrixPart(operands.a, i, m), MatrixPart(workspace, 0, panel), high, k, 1, Range(0, wide))
                for s in range(wide):
                    for q in range(high):
                        at = (i + s) * n + r + q
                        value = workspace[q * panel + s]
                        c[at] = value + scale * c[at] if keeps else value

    return (transposing, 4 * panel) if columns else (in_place, 0)
