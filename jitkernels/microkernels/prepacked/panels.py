"""GEMM with a B that was packed beforehand: constant weights, whose panels compiled code reads in each call.

Loops, from outside: bands of rows of C, blocks of k, panels of B, tiles of A. A band is large enough that panels are
read from memory a few times only, and small enough that its rows of A and C stay in the second-level cache. Tiles of a
band have about as many rows each; but where B comes from memory, the first tile has as many as possible, to compute
meanwhile.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import External, Range, inlined, written_by
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    Consumer,
    GemmExtents,
    MatrixPart,
    Operands,
    ir_function,
    matmul_arguments,
)
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, Tile, element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, packing_slack, transpose_panel
from jitkernels.microkernels.gemm.thresholds import L2_BYTES
from jitkernels.runtime.loading import loader

VECTORS = 2
"""Vectors of a panel."""
PANEL_PREFETCH_BYTES = 1 << 14
"""How far ahead tiles prefetch B. Few rows of A with weights from memory take half the time, on Sapphire Rapids."""
PANEL_DEPTH_BYTES = 4096
"""Most bytes of a row of A in a block of k."""
PANEL_BAND_BYTES = L2_BYTES
"""Most bytes of the rows of A, and of those of C, in a band."""


def panel_width(dtype: str) -> int:
    """Columns of a panel on this machine."""
    return VECTORS * cpu_target.target().lanes(dtype)


def packed_columns(b: AnyArray) -> AnyArray:
    """B [k, n] as panels [panels, k, width] of its columns, those behind the last one 0."""
    (k, n), width = b.shape, panel_width(b.dtype.name)
    panels = np.zeros((-(-n // width), k, width), b.dtype)
    whole = n // width
    panels[:whole] = b[:, : whole * width].reshape(k, whole, width).transpose(1, 0, 2)
    if whole * width < n:
        panels[whole, :, : n - whole * width] = b[:, whole * width :]
    return panels


def unpacked_columns(panels: AnyArray, n: int) -> AnyArray:
    """The inverse of `packed_columns`."""
    count, k, width = panels.shape
    return panels.transpose(1, 0, 2).reshape(k, count * width)[:, :n]


class _Band(NamedTuple):
    """`high` rows from `row` on, in tiles of `tile`, and `deep` steps along k from `p` on; first: whether p is 0."""

    row: int
    high: int
    tile: int
    p: int
    deep: int
    first: int


def prepacked_kernel(dtype: str, target: Target, *, parallel: bool = True, followed: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, panels, c, m, n, k)``; threads split the rows of C.

    A kernel that is `followed` takes two more integers, see `jitkernels.microkernels.epilogue.tile_consumer`.
    """
    lanes, size = target.lanes(dtype), element_size(dtype)
    rows = 14 if target.registers == 32 else 6
    depth, band_elements = PANEL_DEPTH_BYTES // size, PANEL_BAND_BYTES // size
    workspace = 2 * band_elements + 2 * rows * depth + packing_slack(lanes, rows)
    return RangeKernel(
        name="matmul_prepacked_followed" if followed else "matmul_prepacked",
        arguments=matmul_arguments(dtype, followed=followed),
        body=_body(dtype, lanes, rows),
        extent=3,
        block=rows,
        parallel=parallel,
        workspace=workspace * size,
        workspace_dtype=dtype,
        vector_bytes=lanes * size,
        straight=True,
        names=NAMES,
    )


def prepacked_row_kernel(dtype: str, target: Target, *, followed: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, panels, c, 1, n, k)`` for an A of one row, which is read in place.

    Small networks compute one row at a time: packing, threads and their workspace would take longer than a product.
    """
    lanes, blocks_of = target.lanes(dtype), _blocks(dtype)
    row = _row_function(dtype, lanes)

    def body(operands: Operands, extents: GemmExtents, consumer: Consumer, part: Range) -> None:
        k = extents.k
        blocks, step = blocks_of(k)
        for block in range(blocks if part.begin < part.end else 0):
            p = block * step
            band = _Band(0, 1, 1, p, min(step, k - p), 1 if block == 0 else 0)
            row(MatrixPart(operands.a, p, 0), operands, extents, band)
        if consumer.after is not None:
            call_consumer(consumer.after, consumer.context, 0, 1)

    return RangeKernel(
        name="matmul_prepacked_row_followed" if followed else "matmul_prepacked_row",
        arguments=matmul_arguments(dtype, followed=followed),
        body=body,
        extent=3,
        vector_bytes=lanes * element_size(dtype),
        straight=True,
        names=NAMES,
    )


def _tile_function(dtype: str, lanes: int, count: int, a_stride: int, *, edge: bool) -> Any:
    """Make the function for `count` rows of A times a panel of B."""
    symbol = f"matmul_{'edge' if edge else 'whole'}_{count}"
    tile = Tile(
        symbol, dtype, lanes, count, VECTORS, 0.0, a_by_column=True, a_stride=a_stride, b_stride=VECTORS * lanes,
        mask_c=edge, guard_rows=edge, prefetch=True, prefetch_ahead=PANEL_PREFETCH_BYTES // element_size(dtype),
    )  # fmt: skip
    call = ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    @inlined()
    def multiply(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, live: int, columns: int) -> None:
        call(a.data, a.at, a.stride, b.data, b.at, b.stride, c.data, c.at, c.stride, k, first, live, columns)

    return multiply


def _row_function(dtype: str, lanes: int) -> Any:
    """Make the function that multiplies a single row by all panels, two of them at a time.

    The row is read in place. Panels in the second-level cache are not prefetched: that takes of its bandwidth.
    """
    width, large, size = VECTORS * lanes, L2_BYTES // element_size(dtype), element_size(dtype)

    def function(name: str, panels: int, ahead: int) -> Any:
        symbol = f"matmul_row_{name}"
        tile = Tile(
            symbol, dtype, lanes, 1, panels * VECTORS, 0.0, a_by_column=False, b_stride=width, panel_vectors=VECTORS,
            mask_c=True, prefetch_ahead=ahead,
        )  # fmt: skip
        return ir_function(symbol, dtype, TILE_ARGUMENTS, written_by(Tile.text, tile))

    pair, last = function("pair", 2, 0), function("last", 1, 0)
    streamed = function("streamed", 1, PANEL_PREFETCH_BYTES // size)

    @inlined()
    def multiply(packed: MatrixPart, operands: Operands, extents: GemmExtents, band: _Band) -> None:
        n, k, a, b, c = extents.n, extents.k, packed.data, operands.b, operands.c
        panel, j, is_large = k * width, 0, n * k >= large
        while j < n:
            at, to = j * k + band.p * width, band.row * n + j
            if is_large:
                streamed(a, packed.at, 0, b, at, panel, c, to, 0, band.deep, band.first, 1, n - j)
                j += width
            elif n - j > width:
                pair(a, packed.at, 0, b, at, panel, c, to, 0, band.deep, band.first, 1, n - j)
                j += 2 * width
            else:
                last(a, packed.at, 0, b, at, panel, c, to, 0, band.deep, band.first, 1, n - j)
                j += width

    return multiply


def _edge_tile(dtype: str, lanes: int, rows: int, counts: Sequence[int]) -> Any:
    """Make the function for the last rows of A, or the last panel of B: it takes the smallest tile that holds them."""
    count, *larger = counts
    own = _tile_function(dtype, lanes, count, rows, edge=True)
    if not larger:
        return own
    rest = _edge_tile(dtype, lanes, rows, larger)

    @inlined()
    def multiply(a: MatrixPart, b: MatrixPart, c: MatrixPart, k: int, first: int, live: int, columns: int) -> None:
        if live <= count:
            own(a, b, c, k, first, live, columns)
        else:
            rest(a, b, c, k, first, live, columns)

    return multiply


def _multiply(dtype: str, lanes: int, rows: int) -> Any:
    """Make the function that multiplies the packed rows of a band by all panels."""
    width = VECTORS * lanes
    whole = _tile_function(dtype, lanes, rows, rows, edge=False)
    edge = _edge_tile(dtype, lanes, rows, range(2, rows + 1, 2))

    @inlined()
    def multiply(packed: MatrixPart, operands: Operands, extents: GemmExtents, band: _Band) -> None:
        n, k, deep, first = extents.n, extents.k, band.deep, band.first
        for j in range(0, n, width):
            b = MatrixPart(operands.b, j * k + band.p * width, 0)
            at = packed.at
            for i in range(0, band.high, band.tile):
                a, c = MatrixPart(packed.data, at, 0), MatrixPart(operands.c, (band.row + i) * n + j, n)
                live = min(band.high - i, band.tile)
                if live == rows and n - j >= width:
                    whole(a, b, c, deep, first, rows, width)
                else:
                    edge(a, b, c, deep, first, live, n - j)
                at += rows * deep

    return multiply


def _blocks(dtype: str) -> Any:
    """Make the function that returns how many blocks of k there are, and the steps of each."""
    depth = PANEL_DEPTH_BYTES // element_size(dtype)

    @inlined()
    def blocks_of(k: int) -> Any:
        blocks = max((k + depth - 1) // depth, 1)
        return blocks, max((k + blocks - 1) // blocks, 1)

    return blocks_of


def _body(dtype: str, lanes: int, rows: int) -> Any:
    multiply, size = _multiply(dtype, lanes, rows), element_size(dtype)
    band_elements, large, blocks_of = PANEL_BAND_BYTES // size, L2_BYTES // size, _blocks(dtype)
    text = written_by(transpose_panel, "matmul_pack_rows", dtype, lanes, rows)
    pack_rows = ir_function("matmul_pack_rows", dtype, PACK_ARGUMENTS, text)

    def body(operands: Operands, extents: GemmExtents, consumer: Consumer, workspace: Any, part: Range) -> None:
        n, k, a, count = extents.n, extents.k, operands.a, part.end - part.begin
        blocks, step = blocks_of(k)
        most = max(band_elements // max(n, step), rows)
        bands = max((count + most - 1) // most, 1)
        height = max((count + bands - 1) // bands, 1)
        for row in range(part.begin, part.end, height):
            high = min(height, part.end - row)
            tile = rows
            if n * k < large:
                tiles = (high + rows - 1) // rows
                tile = min(((high + tiles - 1) // tiles + 1) // 2 * 2, rows)
            for block in range(blocks):
                p = block * step
                band, at = _Band(row, high, tile, p, min(step, k - p), 1 if block == 0 else 0), 0
                for i in range(0, high, tile):
                    pack_rows(a, (row + i) * k + p, k, workspace, at, min(high - i, tile), band.deep)
                    at += rows * band.deep
                multiply(MatrixPart(workspace, 0, 0), operands, extents, band)
            if consumer.after is not None:
                call_consumer(consumer.after, consumer.context, row, row + high)

    return body


@functools.cache
def prepacked_entry(dtype: str, target: Target, *, followed: bool = False, is_row: bool = False) -> External:
    """Return the kernel as a callable function; `is_row`: that for an A of one row."""
    kernel = (prepacked_row_kernel if is_row else prepacked_kernel)(dtype, target, followed=followed)
    entry: External = loader.entry_of(kernel, kernel.arguments)
    return entry
