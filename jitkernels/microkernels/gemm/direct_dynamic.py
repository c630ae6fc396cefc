"""Small GEMM with dynamic shape: operands are read in place, and the extents are arguments.

A small operand lies in the first-level cache whatever its strides, so that packing would cost more than it saves. A
transposed B is transposed panel by panel, some steps along k at a time. Tile rows beyond the last row of C read that
row again and are not stored.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, written_by
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    GemmExtents,
    MatrixPart,
    Operands,
    ir_function,
    matmul_arguments,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.skinny_direct import rows_across

K_STEPS_PER_BLOCK = 256
"""Steps along k per block: of a panel of a transposed B, or rows of B that lie on pages of their own."""
TILES_PER_BLOCK = 8
"""Row tiles of C per block, so that C is written while it is in the cache."""
HALF_MIN_THREAD_TILES = 1
"""Half of the least number of tile widths per thread."""


def direct_dynamic_kernel(attr: MatMulAttr, target: Target, *, parallel: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``; threads split the columns of C."""
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    rows, width = 8 if target.registers == 32 else 6, 2 * lanes
    workspace = (K_STEPS_PER_BLOCK * width + packing_slack(lanes, width)) * size
    return RangeKernel(
        name="matmul_compact",
        arguments=matmul_arguments(attr.dtype),
        body=(_transposing if attr.trans_b else _in_place)(attr, target, rows),
        extent=4,
        block=HALF_MIN_THREAD_TILES * width,
        parallel=parallel,
        workspace=workspace if attr.trans_b else 0,
        workspace_dtype=attr.dtype,
        vector_bytes=lanes * size,
        straight=True,
        names=NAMES,
    )


def _tiles(attr: MatMulAttr, target: Target, rows: int) -> Any:
    """Make the function for the next columns of some rows: a tile of two vectors, one vector, or half a vector."""
    dtype, lanes, trans_b = attr.dtype, target.lanes(attr.dtype), attr.trans_b
    width, half = 2 * lanes, max(lanes // 2, 1)

    def tile_function(name: str, lanes: int, vectors: int) -> Any:
        symbol, edge = f"matmul_{name}", vectors == 1
        tile = Tile(
            symbol, dtype, lanes, rows, vectors, attr.beta, a_by_column=attr.trans_a,
            b_stride=width if trans_b else None, mask_b=edge and not trans_b, mask_c=edge,
            guard_rows=trans_b, clamp_rows=trans_b, inline=True, prefetch_beside=not trans_b and not edge,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    wide, single = tile_function("wide", lanes, 2), tile_function("single", lanes, 1)
    narrow = tile_function("narrow", half, 1)

    @inlined()
    def tile(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, high: int, remaining: int) -> None:
        if remaining >= width:
            wide(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, high, remaining)
        elif remaining > half:
            single(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, high, remaining)
        else:
            narrow(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, high, remaining)

    return tile


def _columns(lanes: int) -> Any:
    """Make the function that returns how many of the remaining columns the next tiles cover."""
    width = 2 * lanes

    @inlined()
    def columns(remaining: int) -> int:
        return width if remaining >= width else min(remaining, lanes)

    return columns


def _transposing(attr: MatMulAttr, target: Target, rows: int) -> Callable[..., None]:
    """Make the body for a B that is contiguous along k: it transposes B panel by panel."""
    dtype, lanes, trans_a, depth = attr.dtype, target.lanes(attr.dtype), attr.trans_a, K_STEPS_PER_BLOCK
    width, tile, columns = 2 * lanes, _tiles(attr, target, rows), _columns(lanes)
    text = written_by(transpose_panel, "matmul_transpose_b", dtype, lanes, width)
    transpose = ir_function("matmul_transpose_b", dtype, PACK_ARGUMENTS, text)

    def body(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        stride, step = (m, m) if trans_a else (k, 1)
        for j in range(part.begin, part.end, width):
            width_of_tile = min(width, part.end - j)
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                first = 1 if p == 0 else 0
                transpose(operands.b, j * k + p, k, workspace, 0, width_of_tile, deep)
                done = 0
                while done < width_of_tile:
                    several = columns(width_of_tile - done)
                    for i in range(0, m, rows):
                        a = MatrixPart(operands.a, (i if trans_a else i * k) + p * step, stride)
                        c = MatrixPart(operands.c, i * n + j + done, n)
                        tile(a, MatrixPart(workspace, done, 0), c, deep, first, m - i, several)
                    done += several

    return body


def _in_place(attr: MatMulAttr, target: Target, rows: int) -> Callable[..., None]:
    """Make the body for a B that is contiguous along n. Tiles of fewer rows cover the rows below the whole tiles."""
    lanes, trans_a, depth, together = target.lanes(attr.dtype), attr.trans_a, K_STEPS_PER_BLOCK, TILES_PER_BLOCK * rows
    tile, columns = _tiles(attr, target, rows), _columns(lanes)
    across = rows_across(attr.dtype, target, attr.beta, by_column=trans_a)

    def body(operands: Operands, extents: GemmExtents, part: Range) -> None:
        m, n, k = extents.m, extents.n, extents.k
        stride, step = (m, m) if trans_a else (k, 1)
        for high in range(0, m, together):
            low = min(high + together, m)
            whole = low - (low - high) % rows
            for p in range(0, max(k, 1), depth):
                deep = min(depth, k - p)
                first = 1 if p == 0 else 0
                if high < whole:
                    j = part.begin
                    while j < part.end:
                        several = columns(part.end - j)
                        for i in range(high, whole, rows):
                            a = MatrixPart(operands.a, (i if trans_a else i * k) + p * step, stride)
                            b, c = MatrixPart(operands.b, p * n + j, n), MatrixPart(operands.c, i * n + j, n)
                            tile(a, b, c, deep, first, rows, several)
                        j += several
                if whole < low:
                    a = MatrixPart(operands.a, (whole if trans_a else whole * k) + p * step, stride)
                    b, c = MatrixPart(operands.b, p * n, n), MatrixPart(operands.c, whole * n, n)
                    across(a, b, c, low - whole, deep, first, part)

    return body
