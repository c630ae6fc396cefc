"""Direct convolution of 8-bit integers: the loops around the register tile, and copied rows.

As for floats (`jitkernels.microkernels.convolution.direct`), panels of filters pass over bands of rows that lie in the
cache. A tile reads whole words of unsigned bytes: so the rows of a band are copied, between the zero point, where the
image has padding, signs (which flipping removes), or runs whose last word reaches beyond. Sums begin with the bias
minus what the zero point adds to them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.attrs.convolution_int8 import WORD, Conv2DInt8Attr
from jitkernels.attrs.filter_panels import PANEL
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import IRFunction, Range, inlined, offset, written_by
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.convolution.extents import (
    BAND_SHARE,
    TILE_VECTORS,
    ConvolutionExtents,
    is_padded,
    is_pointwise,
    needed_height,
    needed_width,
)
from jitkernels.microkernels.convolution.int8_packing import (
    LIMIT_WORDS,
    Int8Convolution,
    Int8Images,
    Int8Layout,
    int8_layout,
    packing_of,
    starts_of,
)
from jitkernels.microkernels.convolution.int8_tile import (
    COPIED_BYTES,
    COPY_C_ARGUMENTS,
    FILL_C_ARGUMENTS,
    INT8_C_ARGUMENTS,
    PANEL_BYTES,
    DotProduct,
    Int8Tile,
    byte_copy,
    byte_fill,
)
from jitkernels.microkernels.convolution.tile_text import ROW_PIXELS

SLACK_BYTES = 4 * COPIED_BYTES
"""Bytes behind the last row of a band that copies may overwrite and tiles may read."""


def dot_product_of(target: Target) -> DotProduct:
    """Choose the instruction: two vectors of weights and a word of the image, or their parts, leave room for sums."""
    features, lanes, registers = target.features, target.lanes("int32"), target.registers
    if target.is_x86 and lanes == 16 and "avx512bw" not in features:
        lanes = 8
    if target.is_x86 and (("avx512vnni" in features and lanes == 16) or ("avxvnni" in features and lanes == 8)):
        return DotProduct("vpdpbusd", lanes, (registers - 3) // 2)
    if target.is_x86:
        return DotProduct("pmaddwd", lanes, (registers - 7) // 2)
    if target.is_arm and "i8mm" in features:
        return DotProduct("usdot", lanes, (registers - 3) // 2)
    return DotProduct("mul", lanes, (registers - 9) // 2)


def int8_convolution_kernel(attr: Conv2DInt8Attr, *, is_packed: bool, parallel: bool) -> RangeKernel:
    """Make the loop nest of CONV2D_INT8 or CONV2D_INT8_PACKED for any sizes; threads split the rows of the result."""
    target = cpu_target.target()
    kind = Int8Convolution(
        dot_product_of(target), attr.x_dtype, attr.y_dtype, attr.scaled, attr.activation == "relu", is_packed,
        attr.groups > 1, cpu_target.l2_cache_bytes() // BAND_SHARE,
    )  # fmt: skip
    signature, rows = attr.signature(), attr.batch * attr.out_height
    return RangeKernel(
        f"{attr.name}_{attr.x_dtype}_{attr.y_dtype}",
        signature.c_arguments,
        _body(kind),
        extent=(signature.index("batch"), signature.index("out_height")),
        block=max(-(-rows // 64), 1) if parallel else 1,
        parallel=parallel,
        workspace=_workspace(kind),
        workspace_dtype="int32",
        flags=(),
        vector_bytes=WORD * kind.dot.lanes,
        names=signature.names,
    )


class Cells(NamedTuple):
    """The filters of a tile: the first of all, how many, their place among padded ones, their words, and channels."""

    first: int
    live: int
    place: int
    words: int
    channel: int


class Int8Operands(NamedTuple):
    """The arrays, the panels, and the workspace."""

    arrays: Int8Images
    packed: Any
    workspace: Any


class BytesBand(NamedTuple):
    """Rows of the result whose tiles are computed together: `pixels` in each, whose first taps are `at` of `image`.

    A row of taps below is `pitch` bytes further on. `first`: the first pixel of the result; the one below is `down`
    further on.
    """

    image: Any
    at: int
    pitch: int
    rows: int
    pixels: int
    first: int
    down: int


class TapBytes(NamedTuple):
    """How the taps of a filter lie in a band: distances in bytes, and how long its runs are in words."""

    pixel: int
    lead: int
    down: int
    right: int
    runs: int
    words: int


class PixelSpan(NamedTuple):
    """Neighbouring pixels: the first byte of the image, and of the results, and how many."""

    x: int
    y: int
    pixels: int


class Ahead(NamedTuple):
    """What is prefetched: the first byte of packed filters, and how many for each step."""

    first: int
    step: int


def _tile(kind: Int8Convolution, symbol: str, vectors: int, *, depthwise: bool) -> Any:
    tile = Int8Tile(symbol, kind.dot, vectors, kind.y_dtype, kind.relu, kind.scaled, depthwise=depthwise)
    return IRFunction(symbol, "void", INT8_C_ARGUMENTS, written_by(Int8Tile.text, tile))


def _multiplier(kind: Int8Convolution, layout: Int8Layout, *, depthwise: bool) -> Any:
    """Make the function that computes some pixels of some filters."""
    name = "int8_depthwise" if depthwise else "int8"
    wide = _tile(kind, f"{name}_wide", TILE_VECTORS, depthwise=depthwise)
    narrow = _tile(kind, f"{name}_narrow", 1, depthwise=depthwise)
    copy = IRFunction(f"{name}_copy", "void", COPY_C_ARGUMENTS, written_by(byte_copy, f"{name}_copy"))
    lanes, size = kind.dot.lanes, dtypes.named(kind.y_dtype).size
    strip_at, panels_of = layout.strip_at, layout.panels

    @inlined()
    def multiply(
        of: Int8Operands, image: Any, e: ConvolutionExtents, taps: TapBytes, cells: Cells, span: PixelSpan, ahead: Ahead
    ) -> None:
        starts, strip, y = offset(of.workspace, LIMIT_WORDS), offset(of.workspace, strip_at(e)), of.arrays.y
        scales, stride = offset(starts, panels_of(e) * PANEL), e.filters * size
        width = lanes
        if cells.live > lanes:
            width = TILE_VECTORS * lanes
            wide(image, span.x, taps.pixel, taps.lead, e.kernel_height, taps.down, taps.runs, taps.right, taps.words,
                 of.packed, cells.words, PANEL_BYTES, ahead.first, ahead.step, starts, scales, cells.place,
                 of.workspace, y, span.y, stride, strip, cells.live, span.pixels)  # fmt: skip
        else:
            narrow(image, span.x, taps.pixel, taps.lead, e.kernel_height, taps.down, taps.runs, taps.right, taps.words,
                   of.packed, cells.words, PANEL_BYTES, ahead.first, ahead.step, starts, scales, cells.place,
                   of.workspace, y, span.y, stride, strip, cells.live, span.pixels)  # fmt: skip
        if cells.live < width:
            for i in range(span.pixels):
                copy(strip, i * width * size, y, span.y + i * stride, cells.live * size, 0)

    return multiply


def _pass_of(kind: Int8Convolution, layout: Int8Layout, *, depthwise: bool) -> Any:
    """Make the function that passes some filters over a band."""
    multiply, most, size = (
        _multiplier(kind, layout, depthwise=depthwise),
        kind.dot.pixels,
        dtypes.named(kind.y_dtype).size,
    )
    runs_of, run_of = layout.runs, layout.run

    @inlined()
    def pass_over(of: Int8Operands, e: ConvolutionExtents, band: BytesBand, cells: Cells) -> None:
        runs, words = runs_of(e), (run_of(e) + WORD - 1) // WORD
        pixel, pitch = e.stride_width * e.channels, e.stride_height * band.pitch
        lead, step = ROW_PIXELS * pixel, 1
        if band.pixels == ROW_PIXELS and most >= 2 * ROW_PIXELS:
            lead, step = pitch, 2
        taps = TapBytes(pixel, lead, e.dilation_height * band.pitch, e.dilation_width * e.channels, runs, words)
        tiles = (band.rows + step - 1) // step * ((band.pixels * step + most - 1) // most)
        ahead = cells.words + e.kernel_height * runs * words * PANEL_BYTES
        per_step = (PANEL_BYTES + tiles - 1) // max(tiles, 1)
        for i in range(0, band.rows, step):
            row, done = band.at + i * pitch + cells.channel, 0
            pixels = band.pixels * min(step, band.rows - i)
            count = (pixels + most - 1) // most
            for part in range(count):
                n = (pixels - done + count - part - 1) // (count - part)
                at = ((band.first + i * band.down + done) * e.filters + cells.first) * size
                multiply(of, band.image, e, taps, cells, PixelSpan(row + done * pixel, at, n), Ahead(ahead, per_step))
                ahead += e.kernel_height * runs * words * per_step
                done += n

    return pass_over


def _computer(kind: Int8Convolution, layout: Int8Layout) -> Any:
    """Make the function that computes a band."""
    dense_pass, width, panel_words = (
        _pass_of(kind, layout, depthwise=False),
        TILE_VECTORS * kind.dot.lanes,
        layout.panel_words,
    )
    deep_pass = _pass_of(kind, layout, depthwise=True) if kind.has_depthwise else dense_pass
    is_deep = layout.is_deep

    @inlined()
    def cells_of(e: ConvolutionExtents, group: int, first: int, own: int) -> Any:
        """Return the filters of a group from one on; those of a depthwise convolution have channels of their own."""
        panel = group * ((own + PANEL - 1) // PANEL) + first // PANEL
        channel = first if is_deep(e) else group * e.group_channels
        words = 4 * (panel * panel_words(e) + PANEL + first % PANEL)
        return Cells(group * own + first, min(own - first, width), panel * PANEL + first % PANEL, words, channel)

    @inlined()
    def deep(of: Int8Operands, e: ConvolutionExtents, band: BytesBand) -> None:
        """Compute row by row: neighbouring channels share cache lines."""
        for i in range(band.rows):
            at, first = band.at + i * e.stride_height * band.pitch, band.first + i * band.down
            row = BytesBand(band.image, at, band.pitch, 1, band.pixels, first, band.down)
            for f in range(0, e.filters, width):
                deep_pass(of, e, row, cells_of(e, 0, f, e.filters))

    @inlined()
    def compute(of: Int8Operands, e: ConvolutionExtents, band: BytesBand) -> None:
        if is_deep(e):
            deep(of, e, band)
        else:
            own = e.filters // e.groups
            for group in range(e.groups):
                for first in range(0, own, width):
                    dense_pass(of, e, band, cells_of(e, group, first, own))

    return compute


def _copier(kind: Int8Convolution, layout: Int8Layout) -> tuple[Any, Any]:
    """Make the test whether rows are copied, and the function that copies those of an image from one on."""
    copy = IRFunction("int8_rows", "void", COPY_C_ARGUMENTS, written_by(byte_copy, "int8_rows"))
    fill = IRFunction("int8_fill", "void", FILL_C_ARGUMENTS, written_by(byte_fill, "int8_fill"))
    flip, lanes, is_deep, run_of = kind.shift, kind.dot.lanes, layout.is_deep, layout.run

    @inlined()
    def needs_copy(e: ConvolutionExtents) -> bool:
        has_rest = e.channels % lanes != 0 if is_deep(e) else run_of(e) % WORD != 0
        return flip != 0 or has_rest or is_padded(e)

    @inlined()
    def copy_rows(arrays: Int8Images, e: ConvolutionExtents, first: int, band: Range, scratch: Any) -> None:
        """Copy the rows begin to end of the image whose byte `first` is, where padding may have begun before."""
        zero = flip if arrays.x_zero is None else int(arrays.x_zero[0]) + flip
        wide, c = needed_width(e), e.channels
        left = min(e.pad_left, wide)
        inside = max(min(e.width, wide - left), 0)
        at = 0
        for row in range(band.begin, band.end):
            if row < 0 or row >= e.height:
                fill(scratch, at, wide * c, zero)
            else:
                fill(scratch, at, left * c, zero)
                copy(arrays.x, first + row * e.width * c, scratch, at + left * c, inside * c, flip)
                fill(scratch, at + (left + inside) * c, (wide - left - inside) * c, zero)
            at += wide * c

    return needs_copy, copy_rows


def _band_rows(kind: Int8Convolution) -> Any:
    """Make the function that gives the rows of a band: those of the image that it needs, and its results."""
    band_bytes, size = kind.band_bytes, dtypes.named(kind.y_dtype).size

    @inlined()
    def band_rows(e: ConvolutionExtents) -> int:
        row = e.stride_height * needed_width(e) * e.channels + e.out_width * e.filters * size
        most = max((band_bytes - needed_height(e, 1) * needed_width(e) * e.channels) // max(row, 1), 1)
        bands = (e.out_height + most - 1) // most
        return (e.out_height + bands - 1) // bands

    return band_rows


def _workspace(kind: Int8Convolution) -> Callable[..., Any]:
    layout, band_rows = int8_layout(kind), _band_rows(kind)
    (needs_copy, _), rows_at = _copier(kind, layout), layout.rows_at

    def needed(e: ConvolutionExtents) -> Any:
        rows = 0
        if needs_copy(e):
            rows = needed_height(e, band_rows(e)) * needed_width(e) * e.channels + SLACK_BYTES
        return 4 * rows_at(e) + rows

    return needed


def _body(kind: Int8Convolution) -> Callable[..., None]:
    layout, band_rows, is_packed = int8_layout(kind), _band_rows(kind), kind.is_packed
    packed_at, rows_at = layout.packed_at, layout.rows_at
    pack, write_starts, compute = packing_of(kind, layout), starts_of(kind, layout), _computer(kind, layout)
    needs_copy, copy_rows = _copier(kind, layout)

    @inlined()
    def compute_rows(of: Int8Operands, e: ConvolutionExtents, part: Range) -> None:
        arrays, row, pitch = of.arrays, part.begin, e.width * e.channels
        most, copies, pointwise = band_rows(e), needs_copy(e), is_pointwise(e)
        scratch = offset(of.workspace, rows_at(e))
        while row < part.end:
            image, rows = row // e.out_height, min(most, part.end - row)
            first = row - image * e.out_height
            top, to, w = first * e.stride_height - e.pad_top, row * e.out_width, e.out_width
            if copies or not pointwise:
                rows = min(rows, e.out_height - first)
            high, wide = (1, rows * w) if pointwise else (rows, w)
            if copies:
                copy_rows(arrays, e, image * e.height * pitch, Range(top, top + needed_height(e, rows)), scratch)
                compute(of, e, BytesBand(scratch, 0, needed_width(e) * e.channels, high, wide, to, w))
            else:
                compute(of, e, BytesBand(arrays.x, (image * e.height + top) * pitch, pitch, high, wide, to, w))
            row += rows

    def body(arrays: Int8Images, e: ConvolutionExtents, workspace: Any, part: Range) -> None:
        if is_packed:
            write_starts(arrays, e, arrays.w, workspace)
            compute_rows(Int8Operands(arrays, arrays.w, workspace), e, part)
        else:
            packed = offset(workspace, packed_at(e))
            pack(arrays.w, e, packed)
            write_starts(arrays, e, packed, workspace)
            compute_rows(Int8Operands(arrays, packed, workspace), e, part)

    return body
