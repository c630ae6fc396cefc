"""The gradient of a convolution with respect to its filters: the tiles of a convolution, which sum over pixels here.

For each chunk of pixels, images and a panel of gradients are packed, which fill the L2 cache
(`jitkernels.microkernels.convolution.gradient_chunks`). The sums go on in the result from chunk to chunk. Where each
channel has one filter, lanes are channels, and a tile takes taps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.convolution.depthwise import DEPTHWISE_PIXELS
from jitkernels.microkernels.convolution.extents import (
    TILE_VECTORS,
    Convolution,
    ConvolutionExtents,
    is_depthwise,
    tile_of,
)
from jitkernels.microkernels.convolution.gradient_chunks import (
    ChunkRows,
    Gradients,
    PixelChunk,
    chunk_layout,
    chunk_workspace,
    first_inside,
    packed_elements_of,
    prepare_of,
)
from jitkernels.microkernels.convolution.tile_text import FIRST_CHUNK, ROW_PIXELS
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel

MIN_THREAD_FILTERS = 32
"""Filters that a thread gets at least: a panel."""


class FilterPanel(NamedTuple):
    """Filters of a tile: the first of all, how many, and their group."""

    first: int
    live: int
    group: int


def backward_weights_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of CONV2D_BACKWARD_WEIGHTS for any sizes; threads split the filters."""
    target, signature = cpu_target.target(), attr.signature()
    pixels = (target.registers - TILE_VECTORS - 1) // TILE_VECTORS
    lanes, size = target.lanes(attr.dtype), element_size(attr.dtype)
    kind = Convolution(attr.dtype, lanes, pixels, False, False, "identity", 0, 0, False)
    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        _body(kind),
        extent=signature.index("filters"),
        block=_block(attr, kind.width) if parallel else max(attr.filters, 1),
        parallel=parallel,
        workspace=chunk_workspace(kind),
        workspace_dtype=attr.dtype,
        flags=("contract",),
        vector_bytes=lanes * size,
        straight=True,
        names=signature.names,
    )


def _block(attr: Any, width: int) -> int:
    """Filters that a thread gets at least, whole panels of whole groups."""
    own = attr.filters // attr.groups
    unit: int = max(width if attr.groups == 1 or own == 1 else own, 1)
    units: int = max(-(-attr.filters // (64 * unit)), -(-MIN_THREAD_FILTERS // unit))
    return units * unit


def _dense(kind: Convolution) -> Any:
    """Make the function that adds a chunk's products to a panel of filters."""
    wide = tile_of(kind, "weights_wide", kind.pixels, TILE_VECTORS, strided_runs=True)
    narrow = tile_of(kind, "weights_narrow", kind.pixels, 1, panel=kind.width, strided_runs=True)
    width, lanes, most, is_blocked = kind.width, kind.lanes, kind.pixels, chunk_layout(kind).is_blocked
    text = written_by(copy_panel, "weights_pack", kind.dtype, lanes, width)
    pack = ir_function("weights_pack", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def dense(arrays: Gradients, e: ConvolutionExtents, chunk: PixelChunk, panel: FilterPanel, packed: Any) -> None:
        image, dw, f, live = chunk.image, arrays.dw, panel.first, panel.live
        for i in range(chunk.images * chunk.rows):
            row = i // chunk.rows * e.out_height + i % chunk.rows
            first = (chunk.first + row * e.out_width) * e.filters + f
            pack(arrays.dy, first, e.filters, packed, i * chunk.columns * width, live, chunk.columns)
        blocked = is_blocked(e)
        runs = e.kernel_width if blocked else 1
        run = e.group_channels if blocked else e.kernel_width * e.channels
        down, right, line = e.stride_height * chunk.pitch, e.stride_width * chunk.pixel, chunk.columns * width
        count = (run + most - 1) // most
        for part in range(count):
            done = part * run // count
            n, own = (part + 1) * run // count - done, chunk.at + done
            if blocked:
                own = chunk.at + (panel.group * count + part) * chunk.block
            for tap in range(e.kernel_height * runs):
                a, b = tap // runs, tap % runs
                top, left, rows, columns = 0, 0, chunk.rows, chunk.columns
                if blocked:
                    above, before = e.pad_top - a * e.dilation_height, e.pad_left - b * e.dilation_width
                    top = first_inside(above, e.stride_height, chunk.row, rows)
                    rows = first_inside(above + e.height, e.stride_height, chunk.row, rows) - top
                    left = first_inside(before, e.stride_width, chunk.column, columns)
                    columns = first_inside(before + e.width, e.stride_width, chunk.column, columns) - left
                x = own + a * e.dilation_height * chunk.pitch + b * e.dilation_width * chunk.pixel
                x += top * down + left * right
                at, w = (tap * run + done) * e.filters + f, top * line + left * width
                if rows == 0:
                    rows, columns = 1, 0
                if live > lanes:
                    wide(image, x, right, chunk.rows * line, chunk.images, chunk.size, rows, down, columns, packed,
                         w, line, 0, 0, dw, 0, dw, dw, at, e.filters, live, n, chunk.state, 0, 0, dw, 0, 0)  # fmt: skip
                else:
                    narrow(image, x, right, chunk.rows * line, chunk.images, chunk.size, rows, down, columns, packed,
                           w, line, 0, 0, dw, 0, dw, dw, at, e.filters, live, n, chunk.state, 0, 0, dw, 0,
                           0)  # fmt: skip

    return dense


def _depthwise(kind: Convolution) -> Any:
    """Make the function that adds a chunk's products to some filters, each of which has a channel of its own."""
    whole = tile_of(kind, "weights_depthwise", DEPTHWISE_PIXELS, TILE_VECTORS, depthwise=True)
    part_of = tile_of(kind, "weights_depthwise_part", DEPTHWISE_PIXELS, 1, depthwise=True, masked=True)
    width, lanes, most = kind.width, kind.lanes, DEPTHWISE_PIXELS

    @inlined()
    def depthwise(arrays: Gradients, e: ConvolutionExtents, chunk: PixelChunk, panel: FilterPanel) -> None:
        image, dy, dw, c = chunk.image, arrays.dy, arrays.dw, e.channels
        down, right, over = e.stride_height * chunk.pitch, e.stride_width * c, e.dilation_width * c
        count, end = (e.kernel_width + most - 1) // most, panel.first + panel.live
        for a in range(e.kernel_height):
            done = 0
            for part in range(count):
                n = (e.kernel_width - done + count - part - 1) // (count - part)
                x = chunk.at + a * e.dilation_height * chunk.pitch + done * over
                at, f = (a * e.kernel_width + done) * c, panel.first
                while f < end:
                    live = min(end - f, width)
                    if live == width:
                        whole(image, x + f, over, ROW_PIXELS * over, chunk.rows, down, chunk.columns, right, 1, dy,
                              chunk.first * c + f, c, 0, 0, dw, 0, dw, dw, at + f, c, live, n,
                              chunk.state, 0, 0, dw, 0, 0)  # fmt: skip
                    else:
                        live = min(live, lanes)
                        part_of(image, x + f, over, ROW_PIXELS * over, chunk.rows, down, chunk.columns, right, 1, dy,
                                chunk.first * c + f, c, 0, 0, dw, 0, dw, dw, at + f, c, live, n,
                                chunk.state, 0, 0, dw, 0, 0)  # fmt: skip
                    f += live
                done += n

    return depthwise


def _panels(kind: Convolution) -> Any:
    """Make the function that adds a chunk's products to the filters from `first` to `end`, panel by panel."""
    dense, depthwise, width = _dense(kind), _depthwise(kind), kind.width

    @inlined()
    def add_chunk(
        arrays: Gradients, e: ConvolutionExtents, chunk: PixelChunk, first: int, end: int, packed: Any
    ) -> None:
        if is_depthwise(e):
            depthwise(arrays, e, chunk, FilterPanel(first, end - first, 0))
        else:
            own, f = e.filters // e.groups, first
            while f < end:
                group = f // own
                live = min(min((group + 1) * own, end) - f, width)
                dense(arrays, e, chunk, FilterPanel(f, live, group), packed)
                f += live

    return add_chunk


def _body(kind: Convolution) -> Any:
    add_chunk, prepare, packed_elements, layout = (
        _panels(kind),
        prepare_of(kind),
        packed_elements_of(kind),
        chunk_layout(kind),
    )
    sampled, chunk_of = layout.sampled, layout.chunk

    @inlined()
    def add_images(arrays: Gradients, source: ConvolutionExtents, batch: int, part: Range, workspace: Any) -> None:
        e = sampled(source)
        shape = chunk_of(e)
        scratch, image, state = offset(workspace, packed_elements(e, shape)), 0, FIRST_CHUNK
        while image < batch:
            images, row = min(shape.images, batch - image), 0
            while row < e.out_height:
                rows, column = min(shape.rows, e.out_height - row), 0
                c = prepare(arrays, source, e, ChunkRows(image, images, row, rows), scratch)
                while column < e.out_width:
                    n = min(shape.columns, e.out_width - column)
                    at = c.at + column * e.stride_width * c.pixel
                    chunk = PixelChunk(c.image, at, c.pixel, c.pitch, c.size, c.block, images, rows, n,
                                       c.first + column, row, column, state)  # fmt: skip
                    add_chunk(arrays, e, chunk, part.begin, part.end, workspace)
                    state = 0
                    column += n
                row += rows
            image += images

    @inlined()
    def clear(arrays: Gradients, e: ConvolutionExtents, begin: int, end: int) -> None:
        for tap in range(e.kernel_height * e.kernel_width * e.group_channels):
            for f in range(begin, end):
                arrays.dw[tap * e.filters + f] = 0

    def body(arrays: Gradients, e: ConvolutionExtents, batch: int, workspace: Any, part: Range) -> None:
        if batch == 0:
            clear(arrays, e, part.begin, part.end)
        else:
            add_images(arrays, e, batch, part, workspace)

    return body
