"""Chunks of the pixels that the gradient of filters sums over: their shapes, and what is copied for them.

1. Images whose channels fill tiles are packed in blocks of as many channels as a tile takes, from which taps leave out
   the pixels whose neighbour lies in the padding. Pixels far apart would evict each other from the L1 cache.
2. Filters of one pixel see no pixels between the strides: these are not packed.
3. Of few channels a tile takes those of several taps in a row. Such images, and those of which each channel has one
   filter, are copied between zeros if they are padded, and else read where they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.convolution.extents import (
    Convolution,
    ConvolutionExtents,
    is_depthwise,
    is_padded,
    needed_height,
    needed_width,
)
from jitkernels.microkernels.convolution.image_copies import padding_of, padding_slack
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack

SEPARATE_TAPS = 2
"""Tiles whose channels, at least, a tap has whose channels are packed in blocks."""
MIN_CHUNK_PIXELS = 32
"""Pixels of a chunk at least: tiles load and store their sums once for all of them."""
DEPTHWISE_SHARE = 0.625
"""The share of the L1 cache that a tile's channels take of the gradients of a chunk, where channels have one filter."""


class Gradients(NamedTuple):
    """The arrays."""

    x: Any
    dy: Any
    dw: Any


class PixelChunk(NamedTuple):
    """Pixels of `rows` rows of the result in each of some `images`, `columns` of each row.

    The first one is pixel `first` of all images, in `row` and `column` of its own. The element of its first tap is `at`
    of `image`, which may be a copy; the next pixel of the image is `pixel` elements further on, a row `pitch`, an image
    `size`, and a block of channels `block` elements. `state`: the argument `chunk` of tiles.
    """

    image: Any
    at: int
    pixel: int
    pitch: int
    size: int
    block: int
    images: int
    rows: int
    columns: int
    first: int
    row: int
    column: int
    state: int


class ChunkRows(NamedTuple):
    """Rows of the result in each of some `images`, from `image` on, the first of them `row`."""

    image: int
    images: int
    row: int
    rows: int


class CopiedRows(NamedTuple):
    """Some `high` rows of an image from element `first` on: the next one `down` elements further on.

    Every `right`-th pixel is taken of them.
    """

    first: int
    down: int
    right: int
    high: int


class ChunkShape(NamedTuple):
    """Images, rows and columns of a chunk at most, and the elements of a copied image.

    All its images have that many rows, or it has one image.
    """

    images: int
    rows: int
    columns: int
    copied: int


def _block_channels(kind: Convolution) -> int:
    """Elements of a block of channels: those of a tile, in whole vectors."""
    return -(-kind.pixels // kind.lanes) * kind.lanes


@inlined()
def first_inside(pixel: int, step: int, begin: int, count: int) -> int:
    """Return which of `count` pixels of the result from `begin` on is the first whose tap is not before `pixel`."""
    return min(max((pixel + step - 1) // step - begin, 0), count)


class ChunkLayout(NamedTuple):
    """Functions of the extents of a convolution.

    `is_blocked`: whether images are packed in blocks of channels; `blocks`: how many of a group; `sampled`: the
    convolution of the pixels that are packed; `chunk`: the shape of its chunks.
    """

    is_blocked: Any
    blocks: Any
    sampled: Any
    chunk: Any


def chunk_layout(kind: Convolution) -> ChunkLayout:
    most, width, block, size = kind.pixels, kind.width, _block_channels(kind), element_size(kind.dtype)
    elements = cpu_target.l2_cache_bytes() // size
    depthwise_pixels = int(cpu_target.l1_cache_bytes() * DEPTHWISE_SHARE) // (width * size)

    @inlined()
    def is_blocked(e: ConvolutionExtents) -> bool:
        is_one_run = e.groups == 1 and e.dilation_width == 1 and e.channels < SEPARATE_TAPS * most
        return not is_one_run and not is_depthwise(e)

    @inlined()
    def blocks(e: ConvolutionExtents) -> int:
        return (e.group_channels + most - 1) // most

    @inlined()
    def sampled(e: ConvolutionExtents) -> ConvolutionExtents:
        # Filters of one pixel see no pixels between the strides.
        if not is_blocked(e) or is_padded(e) or e.kernel_height * e.kernel_width != 1:
            return e
        return ConvolutionExtents(
            e.out_height, e.out_width, e.channels, 1, 1, e.filters, e.groups, e.group_channels,
            e.out_height, e.out_width, 1, 1, 0, 0, 1, 1,
        )  # fmt: skip

    @inlined()
    def chunk(e: ConvolutionExtents) -> ChunkShape:
        blocked = is_blocked(e)
        packed = e.groups * blocks(e) * block if blocked else e.channels
        pixels = max(elements // (width + packed * e.stride_height * e.stride_width), MIN_CHUNK_PIXELS)
        if is_depthwise(e):
            pixels = depthwise_pixels
        rows = max(pixels // e.out_width, 1)
        parts = (e.out_height + rows - 1) // rows
        rows = (e.out_height + parts - 1) // parts
        images = 1
        if parts == 1 and not is_depthwise(e):
            images = max(pixels // (e.out_height * e.out_width), 1)
        copied = 0
        if blocked:
            copied = min(needed_height(e, rows), e.height) * e.width * packed
        elif is_padded(e):
            copied = needed_height(e, rows) * needed_width(e) * packed
        return ChunkShape(images, rows, min(e.out_width, pixels), copied)

    return ChunkLayout(is_blocked, blocks, sampled, chunk)


def packed_elements_of(kind: Convolution) -> Any:
    """Make the function that gives the elements of a packed panel of gradients."""
    width, slack = kind.width, packing_slack(kind.lanes, kind.width)

    @inlined()
    def packed_elements(e: ConvolutionExtents, shape: ChunkShape) -> int:
        pixels = 0 if is_depthwise(e) else shape.images * shape.rows * shape.columns
        return (pixels * width + slack + 63) // 64 * 64

    return packed_elements


def chunk_workspace(kind: Convolution) -> Any:
    packed_elements, layout = packed_elements_of(kind), chunk_layout(kind)
    slack, size, sampled, chunk = padding_slack(kind), element_size(kind.dtype), layout.sampled, layout.chunk

    def needed(e: ConvolutionExtents) -> Any:
        shape = chunk(sampled(e))
        return (packed_elements(e, shape) + shape.images * shape.copied + slack) * size

    return needed


def _blocks(kind: Convolution) -> Any:
    """Make the function that packs rows of an image, which a `chunk` reads, in blocks of channels."""
    block, _most, blocks = _block_channels(kind), kind.pixels, chunk_layout(kind).blocks
    text = written_by(copy_panel, "weights_block", kind.dtype, kind.lanes, block)
    copy = ir_function("weights_block", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def pack_blocks(x: Any, e: ConvolutionExtents, rows: CopiedRows, chunk: PixelChunk, to: int) -> None:
        run, count, right = e.group_channels, blocks(e), rows.right * e.channels
        for block_number in range(e.groups * count):
            group, part = block_number // count, block_number % count
            done = part * run // count
            live, at = (part + 1) * run // count - done, rows.first + group * run + done
            for i in range(rows.high):
                target = to + block_number * chunk.block + i * chunk.pitch
                copy(x, at + i * rows.down, right, chunk.image, target, live, e.width)

    return pack_blocks


def prepare_of(kind: Convolution) -> Any:
    """Make the function that copies what some rows of a chunk read, where tiles read copies."""
    pad_rows, is_blocked, pack_images = padding_of(kind), chunk_layout(kind).is_blocked, _pack_images(kind)

    @inlined()
    def prepare(
        arrays: Gradients, source: ConvolutionExtents, e: ConvolutionExtents, rows: ChunkRows, scratch: Any
    ) -> PixelChunk:
        if is_blocked(e):
            chunk: PixelChunk = pack_images(arrays, source, e, rows, scratch)
            return chunk
        c, top = e.channels, rows.row * e.stride_height - e.pad_top
        pitch, size, first = e.width * c, e.height * e.width * c, first_pixel(e, rows)
        at = rows.image * size
        if is_padded(e):
            high, wide = needed_height(e, rows.rows), needed_width(e) * c
            for i in range(rows.images):
                pad_rows(offset(arrays.x, at + i * size), e, e.channels, top, high, offset(scratch, i * high * wide))
            return PixelChunk(
                scratch, 0, c, wide, high * wide, 0, rows.images, rows.rows, 0, first, rows.row, 0, 0
            )  # fmt: skip
        return PixelChunk(
            arrays.x, at + top * pitch, c, pitch, size, 0, rows.images, rows.rows, 0, first, rows.row, 0, 0
        )  # fmt: skip

    return prepare


@inlined()
def first_pixel(e: ConvolutionExtents, rows: ChunkRows) -> int:
    """Return the number of the first pixel of a chunk in all images."""
    return (rows.image * e.out_height + rows.row) * e.out_width


def _pack_images(kind: Convolution) -> Any:
    """Make the function that packs what some rows of a chunk read of `source`, in the pixels that `e` has of it."""
    pack_blocks, block = _blocks(kind), _block_channels(kind)

    @inlined()
    def pack_images(
        arrays: Gradients, source: ConvolutionExtents, e: ConvolutionExtents, rows: ChunkRows, scratch: Any
    ) -> PixelChunk:
        top = rows.row * e.stride_height - e.pad_top
        begin = max(top, 0)
        high = max(min(top + needed_height(e, rows.rows), e.height) - begin, 0)
        pitch, line, own = e.width * block, source.width * e.channels, high * e.width * block
        down, right = source.stride_height // e.stride_height * line, source.stride_width // e.stride_width
        chunk = PixelChunk(
            scratch, ((top - begin) * e.width - e.pad_left) * block, block, pitch, own, rows.images * own,
            rows.images, rows.rows, 0, first_pixel(e, rows), rows.row, 0, 0,
        )  # fmt: skip
        for i in range(rows.images):
            at = (rows.image + i) * source.height * line + begin * down
            pack_blocks(arrays.x, e, CopiedRows(at, down, right, high), chunk, i * own)
        return chunk

    return pack_images
