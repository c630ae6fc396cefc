"""Direct convolution: the loops around the register tile, packed filters, and padded rows.

For each band of rows of the result, the rows of the image that it needs are copied between zeros, unless they need no
padding; then each panel of filters passes over the band while that lies in the cache.  Filters are packed once per
call.  A filter of one pixel without strides and padding sees one long row of pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import Target
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.convolution.tile import TILE_ARGUMENTS, ConvolutionTile
from jitkernels.microkernels.epilogue.bias_activation import row_epilogue
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack

TILE_VECTORS = 2
"""Vectors of filters in a tile."""
DEPTHWISE_PIXELS = 8
"""Pixels of a depthwise tile: two vectors for each leave registers for the weights."""
BAND_SHARE = 4
"""The share of the L2 cache, as a divisor, that the rows of the image in a band take."""


class Images(NamedTuple):
    """The arrays; bias is None where there is none."""

    x: Any
    w: Any
    bias: Any
    y: Any


class ConvolutionExtents(NamedTuple):
    """The integers of the row."""

    height: int
    width: int
    channels: int
    kernel_height: int
    kernel_width: int
    filters: int
    groups: int
    group_channels: int
    out_height: int
    out_width: int
    stride_height: int
    stride_width: int
    pad_top: int
    pad_left: int
    dilation_height: int
    dilation_width: int


class Band(NamedTuple):
    """Rows of the result whose tiles are computed together, and where the image begins for them.

    `pixels` of the result in each of `rows` rows, the first of them the pixel `first`. The image's element of their
    first tap is `at`; a row of taps below is `pitch` elements further on.
    """

    at: int
    pitch: int
    rows: int
    pixels: int
    first: int


@frozen_dataclass
class Convolution:
    """What determines the code."""

    dtype: str
    lanes: int
    pixels: int
    biased: bool
    activation: str
    band_elements: int

    @property
    def width(self) -> int:
        """Filters of a panel."""
        return TILE_VECTORS * self.lanes


def convolution_of(dtype: str, target: Target, *, biased: bool, activation: str) -> Convolution:
    """Choose the tile by the registers: sums, the vectors of weights, and one broadcast."""
    pixels = (target.registers - TILE_VECTORS - 1) // TILE_VECTORS
    band = cpu_target.l2_cache_bytes() // BAND_SHARE // element_size(dtype)
    return Convolution(dtype, target.lanes(dtype), pixels, biased, activation, band)


@inlined()
def covered(extent: int, dilation: int) -> int:
    """Return how many pixels a filter of some extent covers."""
    return (extent - 1) * dilation + 1


@inlined()
def needed_width(e: ConvolutionExtents) -> int:
    """Return the pixels of an image's row, padding included, that a row of the result needs."""
    return (e.out_width - 1) * e.stride_width + covered(e.kernel_width, e.dilation_width)


@inlined()
def needed_height(e: ConvolutionExtents, rows: int) -> int:
    """Return the rows of an image, padding included, that some rows of the result need."""
    return (rows - 1) * e.stride_height + covered(e.kernel_height, e.dilation_height)


@inlined()
def is_padded(e: ConvolutionExtents) -> bool:
    """Return whether some window reaches beyond the image."""
    return (
        e.pad_top > 0 or e.pad_left > 0 or needed_height(e, e.out_height) > e.height or needed_width(e) > e.width
    )  # fmt: skip


@inlined()
def is_depthwise(e: ConvolutionExtents) -> bool:
    """Return whether each channel has one filter, so that lanes are channels."""
    return e.group_channels == 1 and e.filters == e.channels


@inlined()
def is_pointwise(e: ConvolutionExtents) -> bool:
    """Return whether each pixel of the result depends on the pixel at its place alone, in images without padding."""
    is_one = e.kernel_height == 1 and e.kernel_width == 1 and e.stride_height == 1 and e.stride_width == 1
    return is_one and e.out_height == e.height and e.out_width == e.width and e.pad_top == 0 and e.pad_left == 0


def convolution_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of CONV2D for any sizes; threads split the rows of the result."""
    kind = convolution_of(attr.dtype, cpu_target.target(), biased=attr.biased, activation=attr.activation)
    size, signature = element_size(kind.dtype), attr.signature()
    rows = attr.batch * attr.out_height
    return RangeKernel(
        f"conv2d_{attr.activation}_{attr.dtype}",
        signature.c_arguments,
        _body(kind),
        extent=(signature.index("batch"), signature.index("out_height")),
        block=max(-(-rows // 64), 1) if parallel else 1,
        parallel=parallel,
        workspace=_workspace(kind),
        workspace_dtype=kind.dtype,
        flags=("contract",),
        vector_bytes=kind.lanes * size,
        straight=True,
        names=signature.names,
    )


def _layout(kind: Convolution) -> tuple[Any, Any, Any]:
    """Make the functions that give the rows of a band, the elements of a panel, and those of all panels."""
    width, slack, band_elements = kind.width, packing_slack(kind.lanes, kind.width), kind.band_elements

    @inlined()
    def band_rows(e: ConvolutionExtents) -> int:
        row = e.stride_height * needed_width(e) * e.channels
        rows = max((band_elements - needed_height(e, 1) * needed_width(e) * e.channels) // max(row, 1), 1)
        return min(rows, e.out_height)

    @inlined()
    def panel_elements(e: ConvolutionExtents) -> int:
        return e.kernel_height * e.kernel_width * e.group_channels * width

    @inlined()
    def packed_elements(e: ConvolutionExtents) -> int:
        panels = e.groups * ((e.filters // e.groups + width - 1) // width)
        return 0 if is_depthwise(e) else (panels * panel_elements(e) + slack + 63) // 64 * 64

    return band_rows, panel_elements, packed_elements


def _workspace(kind: Convolution) -> Callable[..., Any]:
    band_rows, _, packed_elements = _layout(kind)
    size = element_size(kind.dtype)

    def needed(e: ConvolutionExtents) -> Any:
        scratch = needed_height(e, band_rows(e)) * needed_width(e) * e.channels if is_padded(e) else 0
        return (packed_elements(e) + scratch) * size

    return needed


def _pack(kind: Convolution) -> Any:
    """Make the function that packs all filters into panels."""
    width, (_, panel_elements, _) = kind.width, _layout(kind)
    text = written_by(copy_panel, "convolution_pack", kind.dtype, kind.lanes, width)
    pack_panel = ir_function("convolution_pack", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def pack(w: Any, e: ConvolutionExtents, workspace: Any) -> None:
        own = e.filters // e.groups
        depth, target = e.kernel_height * e.kernel_width * e.group_channels, 0
        for group in range(e.groups):
            for first in range(0, own, width):
                pack_panel(w, group * own + first, e.filters, workspace, target, own - first, depth)
                target += panel_elements(e)

    return pack


@inlined()
def pad_rows(x: Any, e: ConvolutionExtents, row: int, rows: int, scratch: Any) -> None:
    """Copy rows of an image, from one that may lie above it, between zeros."""
    wide, c = needed_width(e), e.channels
    left = min(e.pad_left, wide)
    inside = max(min(e.width, wide - left), 0)
    for i in range(rows):
        at = i * wide * c
        source = row + i
        if source < 0 or source >= e.height:
            for k in range(wide * c):
                scratch[at + k] = 0
        else:
            for k in range(left * c):
                scratch[at + k] = 0
            for k in range(inside * c):
                scratch[at + left * c + k] = x[source * e.width * c + k]
            for k in range((left + inside) * c, wide * c):
                scratch[at + k] = 0


def _tile(kind: Convolution, symbol: str, pixels: int, vectors: int, **more: Any) -> Any:
    relu = kind.activation == "relu"
    tile = ConvolutionTile(symbol, kind.dtype, kind.lanes, pixels, vectors, kind.biased, relu, **more)
    return ir_function(symbol, kind.dtype, TILE_ARGUMENTS, written_by(ConvolutionTile.text, tile))


def _finish(kind: Convolution) -> Any:
    """Make the function that applies activations that tiles do not, to the results of a tile."""
    has_rest = kind.activation not in ("identity", "relu")
    finish = row_epilogue(kind.activation, kind.dtype, biased=False)

    @inlined()
    def finish_pixels(y: Any, at: int, stride: int, live: int, pixels: int) -> None:
        if has_rest:
            for i in range(pixels):
                finish(offset(y, at + i * stride), y, live)

    return finish_pixels


def _dense(kind: Convolution) -> Any:
    """Make the function that computes a band with packed panels of filters."""
    wide = _tile(kind, "convolution_wide", kind.pixels, TILE_VECTORS)
    narrow = _tile(kind, "convolution_narrow", kind.pixels, 1, panel=kind.width)
    width, lanes, most, (_, panel_elements, _) = kind.width, kind.lanes, kind.pixels, _layout(kind)
    finish_pixels = _finish(kind)

    @inlined()
    def dense(arrays: Images, e: ConvolutionExtents, band: Band, image: Any, packed: Any) -> None:
        bias, y = arrays.y if arrays.bias is None else arrays.bias, arrays.y
        own, c, is_one_run = e.filters // e.groups, e.channels, e.groups == 1 and e.dilation_width == 1
        runs = 1 if is_one_run else e.kernel_width
        run = e.kernel_width * c if is_one_run else e.group_channels
        count = (band.pixels + most - 1) // most
        pixel, down, right = e.stride_width * c, e.dilation_height * band.pitch, e.dilation_width * c
        panel = 0
        for group in range(e.groups):
            for first in range(0, own, width):
                column, live = group * own + first, min(own - first, width)
                for i in range(band.rows):
                    row, done = band.at + i * e.stride_height * band.pitch + group * e.group_channels, 0
                    for part in range(count):
                        n = (band.pixels - done + count - part - 1) // (count - part)
                        x, at = row + done * pixel, (band.first + i * band.pixels + done) * e.filters + column
                        if live > lanes:
                            wide(image, x, pixel, e.kernel_height, down, runs, right, run, packed, panel, 0,
                                 bias, column, y, at, e.filters, live, n)  # fmt: skip
                        else:
                            narrow(image, x, pixel, e.kernel_height, down, runs, right, run, packed, panel, 0,
                                   bias, column, y, at, e.filters, live, n)  # fmt: skip
                        finish_pixels(y, at, e.filters, live, n)
                        done += n
                panel += panel_elements(e)

    return dense


def _depthwise(kind: Convolution) -> Any:
    """Make the function that computes a band where each channel has one filter."""
    most, width, lanes = DEPTHWISE_PIXELS, kind.width, kind.lanes
    whole = _tile(kind, "depthwise_wide", most, TILE_VECTORS, depthwise=True)
    part_of = _tile(kind, "depthwise_part", most, 1, depthwise=True, masked=True)
    finish_pixels = _finish(kind)

    @inlined()
    def depthwise(arrays: Images, e: ConvolutionExtents, band: Band, image: Any) -> None:
        bias, w, y = arrays.y if arrays.bias is None else arrays.bias, arrays.w, arrays.y
        c = e.channels
        count = (band.pixels + most - 1) // most
        pixel, down, right = e.stride_width * c, e.dilation_height * band.pitch, e.dilation_width * c
        for i in range(band.rows):
            row, done = band.at + i * e.stride_height * band.pitch, 0
            for part in range(count):
                n = (band.pixels - done + count - part - 1) // (count - part)
                at, x, first = (band.first + i * band.pixels + done) * c, row + done * pixel, 0
                while first < c:
                    live = min(c - first, width)
                    if live == width:
                        whole(image, x + first, pixel, e.kernel_height, down, e.kernel_width, right, 1, w, first, c,
                              bias, first, y, at + first, c, live, n)  # fmt: skip
                    else:
                        live = min(live, lanes)
                        part_of(image, x + first, pixel, e.kernel_height, down, e.kernel_width, right, 1, w, first, c,
                                bias, first, y, at + first, c, live, n)  # fmt: skip
                    first += live
                finish_pixels(y, at, c, c, n)
                done += n

    return depthwise


def _body(kind: Convolution) -> Callable[..., None]:
    band_rows, _, packed_elements = _layout(kind)
    pack, dense, depthwise = _pack(kind), _dense(kind), _depthwise(kind)

    @inlined()
    def compute(arrays: Images, e: ConvolutionExtents, band: Band, image: Any, packed: Any) -> None:
        if is_depthwise(e):
            depthwise(arrays, e, band, image)
        else:
            dense(arrays, e, band, image, packed)

    def body(arrays: Images, e: ConvolutionExtents, workspace: Any, part: Range) -> None:
        if not is_depthwise(e):
            pack(arrays.w, e, workspace)
        most, padded, pointwise = band_rows(e), is_padded(e), is_pointwise(e)
        scratch = offset(workspace, packed_elements(e))
        row, size = part.begin, e.height * e.width * e.channels
        while row < part.end:
            image = row // e.out_height
            first = row - image * e.out_height
            rows = min(most, part.end - row)
            pitch = e.width * e.channels
            if pointwise:
                compute(
                    arrays, e, Band(row * pitch, pitch, 1, rows * e.out_width, row * e.out_width), arrays.x, workspace
                )
            else:
                rows = min(rows, e.out_height - first)
                top = first * e.stride_height - e.pad_top
                if padded:
                    pad_rows(offset(arrays.x, image * size), e, top, needed_height(e, rows), scratch)
                    band = Band(0, needed_width(e) * e.channels, rows, e.out_width, row * e.out_width)
                    compute(arrays, e, band, scratch, workspace)
                else:
                    band = Band(image * size + top * pitch, pitch, rows, e.out_width, row * e.out_width)
                    compute(arrays, e, band, arrays.x, workspace)
            row += rows

    return body
