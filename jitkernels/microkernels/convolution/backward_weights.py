"""The gradient of a convolution with respect to its filters: the tiles of a convolution, which sum over pixels here.

For each chunk of pixels and each panel of filters the gradients of the results are packed, so that they stay in the L1
cache while all taps and channels meet them: a tile takes neighbouring channels in place of pixels. Its sums go on in
the result from chunk to chunk, so all images pass over as many filters as the L2 cache holds. Where each channel has
one filter, lanes are channels, and a tile takes taps.
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
    is_padded,
    needed_height,
    needed_width,
    tile_of,
)
from jitkernels.microkernels.convolution.image_copies import padding_of, padding_slack
from jitkernels.microkernels.convolution.tile import FIRST_CHUNK, ROW_PIXELS
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack

MIN_THREAD_FILTERS = 32
"""Filters that a thread gets at least: a panel."""
SWEEP_SHARE = 2
"""The share of the L2 cache, as a divisor, that the filters take which the images pass over together."""
MAX_COPIED_ELEMENTS = 1 << 17
"""Elements of the padded copies of small images in a chunk, which all filters and taps read from the L2 cache."""
L1_SHARE = 0.625
"""The share of the L1 cache that the packed gradients of a chunk take; the images of the same pixels have the rest."""


class Gradients(NamedTuple):
    """The arrays."""

    x: Any
    dy: Any
    dw: Any


class PixelChunk(NamedTuple):
    """Pixels of `rows` rows of the result in each of some `images`, `columns` of each row.

    The first one is pixel `first` of all images. The element of their first tap is `at` of `image`, which may be a
    padded copy; a row of taps below is `pitch` elements further on, an image `size` elements. `state`: the argument
    `chunk` of tiles.
    """

    image: Any
    at: int
    pitch: int
    size: int
    images: int
    rows: int
    columns: int
    first: int
    state: int


class FilterPanel(NamedTuple):
    """Filters of a tile: the first of all, how many, and their group's first channel."""

    first: int
    live: int
    channel: int


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
        workspace=_workspace(kind),
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


def _chunk_pixels(kind: Convolution) -> int:
    return int(cpu_target.l1_cache_bytes() * L1_SHARE) // (kind.width * element_size(kind.dtype))


def _packed_elements(kind: Convolution) -> int:
    """Elements of the packed gradients of a chunk."""
    return _chunk_pixels(kind) * kind.width + packing_slack(kind.lanes, kind.width)


def _workspace(kind: Convolution) -> Any:
    pixels, packed, slack, size = (
        _chunk_pixels(kind), _packed_elements(kind), padding_slack(kind), element_size(kind.dtype),
    )  # fmt: skip

    def needed(e: ConvolutionExtents) -> Any:
        chunk = chunk_shape(e, pixels)
        scratch = chunk.images * padded_elements(e, chunk.rows) + slack if is_padded(e) else 0
        return (packed + scratch) * size

    return needed


class ChunkShape(NamedTuple):
    """Images and rows of a chunk; all its images have that many rows, or it has one image."""

    images: int
    rows: int


@inlined()
def padded_elements(e: ConvolutionExtents, rows: int) -> int:
    """The elements of an image that some rows of the result read, with padding."""
    return needed_height(e, rows) * needed_width(e) * e.channels


@inlined()
def chunk_shape(e: ConvolutionExtents, pixels: int) -> ChunkShape:
    """Chunks of at most some pixels: equal parts of an image, or small images, whose padded copies stay in L2."""
    most = max(pixels // e.out_width, 1)
    parts = (e.out_height + most - 1) // most
    rows = (e.out_height + parts - 1) // parts
    images = 1
    if parts == 1 and not is_depthwise(e):
        images = max(min(pixels // (e.out_height * e.out_width), MAX_COPIED_ELEMENTS // padded_elements(e, rows)), 1)
    return ChunkShape(images, rows)


def _dense(kind: Convolution) -> Any:
    """Make the function that adds a chunk's products to a panel of filters."""
    wide = tile_of(kind, "weights_wide", kind.pixels, TILE_VECTORS, strided_runs=True)
    narrow = tile_of(kind, "weights_narrow", kind.pixels, 1, panel=kind.width, strided_runs=True)
    width, lanes, most = kind.width, kind.lanes, kind.pixels
    text = written_by(copy_panel, "weights_pack", kind.dtype, lanes, width)
    pack = ir_function("weights_pack", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def dense(arrays: Gradients, e: ConvolutionExtents, chunk: PixelChunk, panel: FilterPanel, packed: Any) -> None:
        image, dw, f, live = chunk.image, arrays.dw, panel.first, panel.live
        for i in range(chunk.images * chunk.rows):
            row = i // chunk.rows * e.out_height + i % chunk.rows
            first = (chunk.first + row * e.out_width) * e.filters + f
            pack(arrays.dy, first, e.filters, packed, i * chunk.columns * width, live, chunk.columns)
        is_one_run = e.groups == 1 and e.dilation_width == 1
        runs = 1 if is_one_run else e.kernel_width
        run = e.kernel_width * e.channels if is_one_run else e.group_channels
        down, right = e.stride_height * chunk.pitch, e.stride_width * e.channels
        count = (run + most - 1) // most
        for tap in range(e.kernel_height * runs):
            a, b = tap // runs, tap % runs
            x = chunk.at + a * e.dilation_height * chunk.pitch + b * e.dilation_width * e.channels + panel.channel
            done = 0
            for part in range(count):
                n = (run - done + count - part - 1) // (count - part)
                at = (tap * run + done) * e.filters + f
                if live > lanes:
                    wide(image, x + done, right, 0, chunk.images, chunk.size, chunk.rows, down, chunk.columns, packed,
                         0, 0, 0, 0, dw, 0, dw, dw, at, e.filters, live, n, chunk.state, 0, 0, dw, 0, 0)  # fmt: skip
                else:
                    narrow(image, x + done, right, 0, chunk.images, chunk.size, chunk.rows, down, chunk.columns, packed,
                           0, 0, 0, 0, dw, 0, dw, dw, at, e.filters, live, n, chunk.state, 0, 0, dw, 0, 0)  # fmt: skip
                done += n

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
                dense(arrays, e, chunk, FilterPanel(f, live, group * e.group_channels), packed)
                f += live

    return add_chunk


def _body(kind: Convolution) -> Any:
    add_chunk, pad_rows = _panels(kind), padding_of(kind)
    pixels, packed_elements, width = _chunk_pixels(kind), _packed_elements(kind), kind.width
    sweep_elements = cpu_target.l2_cache_bytes() // element_size(kind.dtype) // SWEEP_SHARE

    @inlined()
    def add_images(arrays: Gradients, e: ConvolutionExtents, batch: int, begin: int, end: int, workspace: Any) -> None:
        scratch, c, padded = offset(workspace, packed_elements), e.channels, is_padded(e)
        size, pitch, shape = e.height * e.width * c, e.width * c, chunk_shape(e, pixels)
        columns, copied, image, state = min(e.out_width, pixels), padded_elements(e, shape.rows), 0, FIRST_CHUNK
        while image < batch:
            images, row = min(shape.images, batch - image), 0
            while row < e.out_height:
                rows, top = min(shape.rows, e.out_height - row), row * e.stride_height - e.pad_top
                first, column = (image * e.out_height + row) * e.out_width, 0
                if padded:
                    for i in range(images):
                        one = offset(arrays.x, (image + i) * size)
                        pad_rows(one, e, e.channels, top, needed_height(e, rows), offset(scratch, i * copied))
                while column < e.out_width:
                    n, right = min(columns, e.out_width - column), column * e.stride_width * c
                    if padded:
                        wide = needed_width(e) * c
                        chunk = PixelChunk(scratch, right, wide, copied, images, rows, n, first + column, state)
                        add_chunk(arrays, e, chunk, begin, end, workspace)
                    else:
                        at = image * size + top * pitch + right
                        chunk = PixelChunk(arrays.x, at, pitch, size, images, rows, n, first + column, state)
                        add_chunk(arrays, e, chunk, begin, end, workspace)
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
        elements = e.kernel_height * e.kernel_width * e.group_channels * width
        step = max(sweep_elements // max(elements, 1), 1) * width
        if batch == 0:
            clear(arrays, e, part.begin, part.end)
        else:
            for begin in range(part.begin, part.end, step):
                add_images(arrays, e, batch, begin, min(begin + step, part.end), workspace)

    return body
