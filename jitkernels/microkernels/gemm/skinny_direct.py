"""Tiles for a skinny C of few rows whose right operand is read in place, as LLVM IR text, and the loops around them.

A B that no L2 cache holds is read once: all tiles of rows pass over the same two vectors of its rows, from a packed A,
while further ones are prefetched. The hardware prefetches nothing there, as each row of B begins on another page.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, written_by
from jitkernels.core.cpu_target import CACHE_LINE_BYTES, Target
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    GemmExtents,
    MatrixPart,
    Operands,
    ir_function,
    matmul_arguments,
    moved,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.thresholds import LARGE_MATRIX_STEPS, PACKED_ROWS

HALF_MIN_THREAD_PANELS = 1
"""Half of the least number of tile widths per thread."""


def rows_across(dtype: str, target: Target, beta: float, *, by_column: bool) -> Any:
    """Make ``(a, b, c, few, k, first, part)``: a part of few rows of c, with vectors of b, read in place, along them.

    Tiles are wide and low, two or four rows high, so that each row of B is read in long runs.
    """
    lanes = target.lanes(dtype)
    many, twice = ((4, 6), (2, 8)) if target.registers == 32 else ((4, 2), (2, 4))

    def strip(rows: int, vectors: int) -> Any:
        tiles = [_tile(dtype, lanes, rows, width, beta, by_column=by_column) for width in (vectors, 2, 1)]
        return _strip(tiles, lanes, vectors)

    of_four, of_two = strip(*many), strip(*twice)

    @inlined()
    def across(a: MatrixPart, b: MatrixPart, c: MatrixPart, few: int, k: int, first: int, part: Range) -> None:
        r = 0
        while r < few:
            high, row, to = few - r, moved(a, r if by_column else r * a.stride), moved(c, r * c.stride)
            if high > 2:
                of_four(row, b, to, k, first, high, part)
                r += 4
            else:
                of_two(row, b, to, k, first, high, part)
                r += 2

    return across


def _tile(dtype: str, lanes: int, rows: int, vectors: int, beta: float, *, by_column: bool) -> Any:
    """Make the tile of up to `rows` rows and so many vectors; one of a single vector serves the edge of c, masked."""
    symbol, edge = f"matmul_across{rows}_{vectors}", vectors == 1
    tile = Tile(
        symbol, dtype, lanes, rows, vectors, beta, a_by_column=by_column,
        mask_b=edge, mask_c=edge, guard_rows=True, clamp_rows=True, inline=True,
        unroll=2 if vectors > 2 else 1, prefetch_beside=vectors > 2,
    )  # fmt: skip
    return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))


def _strip(tiles: Sequence[Any], lanes: int, vectors: int) -> Any:
    """Make ``(a, b, c, k, first, high, part)``: `high` rows of a part of c, in tiles of `vectors`, 2 and 1 vectors."""
    wide, double, edge = tiles
    width, pair = vectors * lanes, 2 * lanes

    @inlined()
    def compute(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, high: int, part: Range) -> None:
        j, end = part.begin, part.end
        while end - j >= width:
            wide(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                width,
            )  # fmt: skip
            j += width
        while end - j >= pair:
            double(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                pair,
            )  # fmt: skip
            j += pair
        while j < end:
            edge(
                a.data, a.at, a.stride, b.data, b.at + j, b.stride, c.data, c.at + j, c.stride, k, first, high,
                end - j,
            )  # fmt: skip
            j += lanes

    return compute


def large_matrix_kernel(attr: MatMulAttr, target: Target, *, parallel: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)`` for a B that no L2 cache holds; threads split the columns of C."""
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    rows = 14 if target.registers == 32 else 6
    workspace = -(-PACKED_ROWS // rows) * rows * LARGE_MATRIX_STEPS + packing_slack(lanes, rows)
    return RangeKernel(
        name="matmul_large_matrix",
        arguments=matmul_arguments(attr.dtype),
        body=_large_matrix_body(attr, lanes, rows),
        extent=4,
        block=HALF_MIN_THREAD_PANELS * 2 * lanes,
        parallel=parallel,
        workspace=workspace * size,
        workspace_dtype=attr.dtype,
        vector_bytes=lanes * size,
        straight=True,
        names=NAMES,
    )


def _panel_tile(attr: MatMulAttr, lanes: int, rows: int, counts: Sequence[int]) -> Any:
    """Make ``(a, b, c, k, first, live)``: packed rows of A by two vectors, in the smallest tile that holds them.

    It prefetches two tiles ahead, from the second line on: of rows that are not aligned, those before took the first.
    """
    count, *larger = counts
    symbol, ahead = f"matmul_panel{count}", 4 * lanes + CACHE_LINE_BYTES // element_size(attr.dtype)
    tile = Tile(
        symbol, attr.dtype, lanes, count, 2, attr.beta, a_by_column=True, a_stride=rows, guard_rows=True,
        prefetch=True, prefetch_ahead=ahead,
    )  # fmt: skip
    call = ir_function(symbol, attr.dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    @inlined()
    def own(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, live: int) -> None:
        call(a.data, a.at, 0, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, live, 0)

    if not larger:
        return own
    rest = _panel_tile(attr, lanes, rows, larger)

    @inlined()
    def multiply(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, live: int) -> None:
        if live <= count:
            own(a, b, c, k, first, live)
        else:
            rest(a, b, c, k, first, live)

    return multiply


def _panel_edge(attr: MatMulAttr, lanes: int, rows: int) -> Any:
    """Make ``(a, b, c, k, first, live, columns)``: packed rows of A by the last columns of B, at most a vector."""
    tile = Tile(
        "matmul_panel_edge", attr.dtype, lanes, rows, 1, attr.beta, a_by_column=True, a_stride=rows, mask_b=True,
        mask_c=True, guard_rows=True,
    )  # fmt: skip
    call = ir_function("matmul_panel_edge", attr.dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    @inlined()
    def edge(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, live: int, columns: int) -> None:
        call(a.data, a.at, 0, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, live, columns)

    return edge


def _large_matrix_body(attr: MatMulAttr, lanes: int, rows: int) -> Any:
    dtype, trans_a, width, most = attr.dtype, attr.trans_a, 2 * lanes, -(-PACKED_ROWS // rows) * rows
    whole = _panel_tile(attr, lanes, rows, range(2, rows + 1, 2))
    edge = _panel_edge(attr, lanes, rows)
    text = written_by(copy_panel if trans_a else transpose_panel, "matmul_pack_rows", dtype, lanes, rows)
    pack_rows = ir_function("matmul_pack_rows", dtype, PACK_ARGUMENTS, text)

    def body(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        stride, step = (m, m) if trans_a else (k, 1)
        blocks = max((k + LARGE_MATRIX_STEPS - 1) // LARGE_MATRIX_STEPS, 1)
        deepest = max((k + blocks - 1) // blocks, 1)
        for top in range(0, m, most):
            high = min(most, m - top)
            tiles = (high + rows - 1) // rows
            tall = ((high + tiles - 1) // tiles + 1) // 2 * 2
            for p in range(0, max(k, 1), deepest):
                deep, first = min(deepest, k - p), 1 if p == 0 else 0
                for i in range(tiles):
                    start = (top + i * tall if trans_a else (top + i * tall) * stride) + p * step
                    live = min(high - i * tall, tall)
                    pack_rows(operands.a, start, stride, workspace, i * rows * deep, live, deep)
                j = part.begin
                while j < part.end:
                    columns = width if part.end - j >= width else min(part.end - j, lanes)
                    b = MatrixPart(operands.b, p * n + j, n)
                    for i in range(tiles):
                        live = min(high - i * tall, tall)
                        a = MatrixPart(workspace, i * rows * deep, 0)
                        c = MatrixPart(operands.c, (top + i * tall) * n + j, n)
                        if columns == width:
                            whole(a, b, c, deep, first, live)
                        else:
                            edge(a, b, c, deep, first, live, columns)
                    j += columns

    return body
