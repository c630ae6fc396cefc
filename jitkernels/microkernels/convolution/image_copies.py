"""Copies of rows of an image in scratch memory: what a band of a convolution reads that cannot read the image itself.

1. Where a filter reaches beyond the image and tiles cannot skip all of it that does, rows lie between zeros.
2. Where the pixels of a tile are a multiple of `CONFLICT_BYTES` apart, all of them map to the same few sets of the L1
   cache and evict each other: a copy has gaps between its pixels.
3. There, a filter of one pixel reads a copy of its pixels alone, one long row: a convolution without strides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.microkernels.convolution.extents import (
    Convolution,
    ConvolutionExtents,
    columns_left,
    columns_right,
    is_depthwise,
    is_padded,
    needed_height,
    needed_width,
    skips_columns,
)
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel
from jitkernels.microkernels.gemm.thresholds import CONFLICT_BYTES

COPIED_VECTORS = 2
"""Vectors that each iteration copies."""
GAP_BYTES = 64
"""Between pixels of a copy: the next one begins in another set of the cache."""


class PixelRun(NamedTuple):
    """Pixels of a copy: the element where the first one begins, how many, and elements from each to the next."""

    at: int
    pixels: int
    pitch: int


def padding_slack(kind: Convolution) -> int:
    """Return how many elements behind the last row a copy may overwrite."""
    return COPIED_VECTORS * kind.lanes


def conflicts_of(kind: Convolution) -> Any:
    """Make the function that returns whether the pixels of a tile evict each other from the L1 cache."""
    size, lanes = element_size(kind.dtype), kind.lanes

    @inlined()
    def has_conflicts(e: ConvolutionExtents) -> bool:
        # Few filters do too little with each pixel to pay for copies.
        pixel = e.stride_width * e.channels * size
        return pixel > 0 and pixel % CONFLICT_BYTES == 0 and 2 * e.filters > lanes and not is_depthwise(e)

    return has_conflicts


def copied_extents_of(kind: Convolution) -> Any:
    """Make the function that returns the extents of the convolution of the copies; of the image where none are made.

    Their channels are the elements of a pixel, and the gap behind it.
    """
    has_conflicts, gap = conflicts_of(kind), GAP_BYTES // element_size(kind.dtype)

    @inlined()
    def copied_extents(e: ConvolutionExtents) -> ConvolutionExtents:
        if not has_conflicts(e):
            return e
        if is_gathered(e):
            return ConvolutionExtents(
                e.out_height, e.out_width, e.channels + gap, 1, 1, e.filters, e.groups, e.group_channels,
                e.out_height, e.out_width, 1, 1, 0, 0, 1, 1,
            )  # fmt: skip
        return ConvolutionExtents(
            e.height, e.width, e.channels + gap, e.kernel_height, e.kernel_width, e.filters, e.groups,
            e.group_channels, e.out_height, e.out_width, e.stride_height, e.stride_width, e.pad_top, e.pad_left,
            e.dilation_height, e.dilation_width,
        )  # fmt: skip

    return copied_extents


def copied_of(kind: Convolution, segment: int) -> Any:
    """Make the function that returns whether copies are made; where pixels share vectors, all padding is copied."""
    has_conflicts, most = conflicts_of(kind), kind.pixels

    @inlined()
    def is_copied(e: ConvolutionExtents) -> bool:
        skips = e.filters > segment and not is_depthwise(e) and 2 * e.out_width >= most and has_narrow_padding(e)
        return has_conflicts(e) or (is_padded(e) and not skips)

    return is_copied


@inlined()
def has_narrow_padding(e: ConvolutionExtents) -> bool:
    """Return whether tiles skip all padding: of a row one pixel at most reaches beyond either side of the image."""
    rows_fit = e.pad_top == 0 and needed_height(e, e.out_height) <= e.height
    columns_fit = e.pad_left == 0 and needed_width(e) <= e.width
    if (e.kernel_height == 1 and not rows_fit) or (not skips_columns(e) and not columns_fit):
        return False
    last = (e.out_width - 1) * e.stride_width - e.pad_left
    is_narrow = columns_left(e, e.stride_width - e.pad_left) + columns_right(e, last - e.stride_width) == 0
    return is_narrow and columns_left(e, 0 - e.pad_left) + columns_right(e, last) <= e.kernel_width


@inlined()
def is_gathered(e: ConvolutionExtents) -> bool:
    """Return whether copies, if there are any, hold the pixels that are read, and nothing else."""
    return e.kernel_height == 1 and e.kernel_width == 1 and not is_padded(e)


def _runs(kind: Convolution) -> tuple[Any, Any]:
    """Make the functions that write a run of zeros, and that copy a run.

    Elements are copied as panels of `copy_panel`, whose last vector reaches beyond the run; what is behind comes later.
    """
    width = COPIED_VECTORS * kind.lanes
    text = written_by(copy_panel, "convolution_copy", kind.dtype, kind.lanes, width)
    copy = ir_function("convolution_copy", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def clear(x: Any, scratch: Any, at: int, count: int) -> None:
        copy(x, 0, 0, scratch, at, 0, (count + width - 1) // width)

    @inlined()
    def copy_run(x: Any, source: int, scratch: Any, at: int, count: int) -> None:
        whole = count // width
        copy(x, source, width, scratch, at, width, whole)
        if whole * width < count:
            copy(x, source + whole * width, 0, scratch, at + whole * width, count - whole * width, 1)

    return clear, copy_run


def _pixels(copy_run: Any) -> Any:
    """Make the function that copies pixels which are `step` elements apart."""

    @inlined()
    def copy_pixels(x: Any, source: int, step: int, channels: int, scratch: Any, to: PixelRun) -> None:
        for j in range(to.pixels):
            copy_run(x, source + j * step, scratch, to.at + j * to.pitch, channels)

    return copy_pixels


def padding_of(kind: Convolution) -> Any:
    """Make the function that copies rows of an image, from one that may lie above it, between zeros.

    A pixel of the copy takes `pixel` elements.
    """
    clear, copy_run = _runs(kind)
    copy_pixels = _pixels(copy_run)

    @inlined()
    def pad_rows(x: Any, e: ConvolutionExtents, pixel: int, row: int, rows: int, scratch: Any) -> None:
        wide, c = needed_width(e), e.channels
        left = min(e.pad_left, wide)
        inside = max(min(e.width, wide - left), 0)
        for i in range(rows):
            at, source = i * wide * pixel, row + i
            if source < 0 or source >= e.height:
                clear(x, scratch, at, wide * pixel)
            else:
                clear(x, scratch, at, left * pixel)
                if pixel == c:
                    copy_run(x, source * e.width * c, scratch, at + left * c, inside * c)
                else:
                    copy_pixels(x, source * e.width * c, c, c, scratch, PixelRun(at + left * pixel, inside, pixel))
                clear(x, scratch, at + (left + inside) * pixel, (wide - left - inside) * pixel)

    return pad_rows


def gathering_of(kind: Convolution) -> Any:
    """Make the function that copies the pixels of rows of the result, of one image or several, for rule 3."""
    copy_pixels = _pixels(_runs(kind)[1])

    @inlined()
    def gather_rows(x: Any, e: ConvolutionExtents, pixel: int, row: int, rows: int, scratch: Any) -> None:
        for i in range(rows):
            image = (row + i) // e.out_height
            line = image * e.height + (row + i - image * e.out_height) * e.stride_height
            to = PixelRun(i * e.out_width * pixel, e.out_width, pixel)
            copy_pixels(x, line * e.width * e.channels, e.stride_width * e.channels, e.channels, scratch, to)

    return gather_rows
