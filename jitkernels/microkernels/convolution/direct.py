"""Direct convolution: the loops around the register tile, and packed filters.

Each panel of filters passes over a band of rows of the result while the rows of the image that it reads lie in the
cache; then the next band follows, of which the last panel has prefetched the image.  Filters are packed once per call,
unless they come packed.

1. A filter of one pixel without strides and padding sees one long row of pixels.
2. Products with padding are skipped: rows of filters outside of the image always, columns for the first and the last
   pixel of a tile.
3. What a band reads is copied where it cannot be read in place (`jitkernels.microkernels.convolution.image_copies`).
4. Where the filters would leave half of a vector unused, pixels share it
   (`jitkernels.microkernels.convolution.few_filters`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.convolution.depthwise import depthwise_of
from jitkernels.microkernels.convolution.extents import (
    TILE_VECTORS,
    Band,
    Chunk,
    Columns,
    Convolution,
    ConvolutionExtents,
    Images,
    TapRuns,
    columns_left,
    columns_right,
    convolution_of,
    covered,
    finisher_of,
    is_depthwise,
    is_pointwise,
    needed_height,
    needed_width,
    skips_columns,
    tile_of,
)
from jitkernels.microkernels.convolution.few_filters import NO_FEW_FILTERS, FewFilters, few_filters
from jitkernels.microkernels.convolution.image_copies import (
    copied_extents_of,
    copied_of,
    gathering_of,
    is_gathered,
    padding_of,
    padding_slack,
)
from jitkernels.microkernels.convolution.tile_text import FIRST_CHUNK, LAST_CHUNK, ROW_PIXELS
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack

MAX_FILTER_SPLITS = 4
"""The most parts of the filters that threads share: each copies, and reads, the rows of the images for its own."""
MAX_UNEVEN_ROWS, MIN_PART_TILES = 8, 2
"""The most rows that are shared unevenly: of 7, one of two threads has 4. And the least tiles of a part of the filters.

Copying 14 rows for two parts takes a twelfth of a 1x1 convolution, as long as the seventh row on one thread of two.
"""


def convolution_kernel(attr: Any, *, is_packed: bool, parallel: bool, segment: int) -> RangeKernel:
    """Make the loop nest of CONV2D or CONV2D_PACKED for any sizes; threads split the rows of the result.

    Where there are no more filters than `segment`, pixels share vectors, with so many lanes for each; 0: nowhere.
    """
    kind = convolution_of(attr, cpu_target.target(), is_packed=is_packed, has_residual=attr.has_residual)
    few = few_filters(kind, segment) if segment else NO_FEW_FILTERS
    size, signature = element_size(kind.dtype), attr.signature()
    return RangeKernel(
        f"{attr.name}_{attr.activation}_{attr.dtype}",
        signature.c_arguments,
        _body(kind, few),
        extent=(signature.index("batch"), signature.index("out_height")),
        splits=MAX_FILTER_SPLITS,
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        workspace=_workspace(kind, few),
        workspace_dtype=kind.dtype,
        flags=("contract",),
        vector_bytes=kind.lanes * size,
        straight=True,
        pitched=not attr.has_residual,  # tiles find a residual where they find y
        names=signature.names,
    )


@inlined()
def filter_splits(rows: int, tiles: int) -> int:
    """Return how many parts of the filters, besides rows, threads share: few rows cannot be shared evenly."""
    parts = MAX_FILTER_SPLITS if rows <= MAX_UNEVEN_ROWS else 1
    while parts > 1 and tiles < MIN_PART_TILES * parts:
        parts //= 2
    return parts


def _layout(kind: Convolution) -> tuple[Any, Any, Any]:
    """Make the functions that give the rows of a band, the elements of a panel, and those of all panels."""
    slack, band_elements, is_packed = packing_slack(kind.lanes, PANEL), kind.band_elements, kind.is_packed

    @inlined()
    def band_rows(e: ConvolutionExtents) -> int:
        # Each panel writes a strip of the results: these stay in the cache, too, until their rows are complete.
        row = e.stride_height * needed_width(e) * e.channels + e.out_width * e.filters
        most = max((band_elements - needed_height(e, 1) * needed_width(e) * e.channels) // max(row, 1), 1)
        bands = (e.out_height + most - 1) // most
        return (e.out_height + bands - 1) // bands

    @inlined()
    def panel_elements(e: ConvolutionExtents) -> int:
        return e.kernel_height * e.kernel_width * e.group_channels * PANEL

    @inlined()
    def packed_elements(e: ConvolutionExtents) -> int:
        panels = e.groups * ((e.filters // e.groups + PANEL - 1) // PANEL)
        return 0 if is_packed or is_depthwise(e) else (panels * panel_elements(e) + slack + 63) // 64 * 64

    return band_rows, panel_elements, packed_elements


def _is_few(few: FewFilters) -> Any:
    """Make the test whether pixels share vectors: another attr of the size class may have more filters.

    Their results are stored as whole vectors, so they must be neighbours.
    """
    segment = few.segment

    @inlined()
    def is_few(e: ConvolutionExtents, y_pitch: int) -> bool:
        return 0 < e.filters <= segment and y_pitch == e.filters and not is_depthwise(e)

    return is_few


def _workspace(kind: Convolution, few: FewFilters) -> Callable[..., Any]:
    is_few, has_few, elements = _is_few(few), few.segment > 0, few.elements
    band_rows, _, packed_elements = _layout(kind)
    size, copied_extents, copied_elements = element_size(kind.dtype), copied_extents_of(kind), _copied_elements(kind)
    is_copied = copied_of(kind, few.segment)

    def needed(e: ConvolutionExtents) -> Any:
        copy, shared = copied_extents(e), 0
        scratch = copied_elements(copy, band_rows(copy)) if is_copied(e) else 0
        if has_few and is_few(e, e.filters):
            shared = elements(e)
        return (packed_elements(e) + scratch + shared) * size

    return needed


def _copied_elements(kind: Convolution) -> Any:
    """Make the function that gives the elements of a copy of what some rows of the result read."""
    slack = padding_slack(kind)

    @inlined()
    def copied_elements(e: ConvolutionExtents, rows: int) -> int:
        return needed_height(e, rows) * needed_width(e) * e.channels + slack

    return copied_elements


def _pack(kind: Convolution) -> Any:
    """Make the function that packs all filters into panels."""
    _, panel_elements, _ = _layout(kind)
    text = written_by(copy_panel, "convolution_pack", kind.dtype, kind.lanes, PANEL)
    pack_panel = ir_function("convolution_pack", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def pack(w: Any, e: ConvolutionExtents, workspace: Any) -> None:
        own = e.filters // e.groups
        depth, target = e.kernel_height * e.kernel_width * e.group_channels, 0
        for group in range(e.groups):
            for first in range(0, own, PANEL):
                pack_panel(w, group * own + first, e.filters, workspace, target, own - first, depth)
                target += panel_elements(e)

    return pack


@inlined()
def rows_inside(e: ConvolutionExtents, top: int, chunk: Chunk) -> Chunk:
    """Return the rows of a chunk of filters that lie in the image, where the first of all lies in its row `top`."""
    begin, end, step = chunk.first, chunk.first + chunk.rows, e.dilation_height
    first = min(max((step - 1 - top) // step, begin), end)
    return Chunk(first, max(min((e.height - 1 - top) // step + 1, end) - first, 0), chunk.state, chunk.ends)


@inlined()
def runs_of(e: ConvolutionExtents, column: int, last: int, skips: bool) -> TapRuns:
    """Return the runs of a tile whose first and last pixels have their first taps in these columns of the image.

    Neighbouring taps are one run where no pixel skips any.
    """
    depth, left, right = e.group_channels, 0, 0
    if skips and skips_columns(e):
        left, right = columns_left(e, column), columns_right(e, last)
    if depth == e.channels and e.dilation_width == 1 and left + right == 0:
        return TapRuns(1, e.kernel_width * depth, 0, 0)
    return TapRuns(e.kernel_width, depth, left, right)


def pass_of(kind: Convolution) -> Any:
    """Make the function that passes some rows of a panel of filters over a band."""
    wide = tile_of(kind, "convolution_wide", kind.pixels, TILE_VECTORS, panel=PANEL, bordered=True)
    narrow = tile_of(kind, "convolution_narrow", kind.pixels, 1, panel=PANEL, bordered=True)
    lanes, most, finish_pixels = kind.lanes, kind.pixels, finisher_of(kind)

    @inlined()
    def pass_over(
        arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, columns: Columns, chunk: Chunk
    ) -> None:
        y, image, f, live = arrays.y, band.image, columns.first, columns.live
        bias = y if arrays.bias is None else arrays.bias
        residual = y if arrays.residual is None else arrays.residual
        pixel, down, right = e.stride_width * e.channels, e.dilation_height * band.pitch, e.dilation_width * e.channels
        pitch, lead, step = e.stride_height * band.pitch, ROW_PIXELS * pixel, 1
        apart = band.apart * band.y_pitch
        if has_short_rows(e, band, most):
            lead, step = pitch, 2
        tap_row = e.kernel_width * e.group_channels
        tile_steps = chunk.rows * tap_row
        tiles = (band.rows + step - 1) // step * ((band.pixels * step + most - 1) // most)
        first = columns.panel + chunk.first * tap_row * PANEL
        ahead, stride = first + tile_steps * PANEL, (PANEL + tiles - 1) // tiles
        steps = max(tiles * tile_steps, 1)
        coming, coming_stride = band.next, (band.ahead + steps - 1) // steps if chunk.ends else 0
        for i in range(0, band.rows, step):
            inside = chunk
            if e.kernel_height > 1:
                inside = rows_inside(e, band.top + i * e.stride_height, chunk)
            row, done = band.at + i * pitch + inside.first * down + columns.channel, 0
            rows, w = max(inside.rows, 1), columns.panel + inside.first * tap_row * PANEL
            pixels = band.pixels * min(step, band.rows - i)
            count = (pixels + most - 1) // most
            for part in range(count):
                n = (pixels - done + count - part - 1) // (count - part)
                x, at = row + done * pixel, (band.first + i * band.down) * band.y_pitch + done * apart + f
                column = band.left + done * e.stride_width
                taps = runs_of(e, column, column + (n - 1) * e.stride_width, step == 1)
                run = taps.run if inside.rows > 0 else 0
                if live > lanes:
                    wide(image, x, pixel, lead, rows, down, taps.runs, right, run, packed, w, 0, ahead, stride, bias, f,
                         residual, y, at, apart, live, n, chunk.state, taps.skip_first, taps.skip_last, arrays.x,
                         coming, coming_stride)  # fmt: skip
                else:
                    narrow(image, x, pixel, lead, rows, down, taps.runs, right, run, packed, w, 0, ahead, stride, bias,
                           f, residual, y, at, apart, live, n, chunk.state, taps.skip_first, taps.skip_last, arrays.x,
                           coming, coming_stride)  # fmt: skip
                if chunk.state >= LAST_CHUNK:
                    finish_pixels(y, at, apart, live, n)
                ahead += tile_steps * stride
                coming += tile_steps * coming_stride
                done += n

    return pass_over


@inlined()
def has_short_rows(e: ConvolutionExtents, band: Band, most: int) -> bool:
    """Return whether a tile takes two rows of the result: where all taps lie in the image, as it would skip none."""
    bottom = band.top + (band.rows - 1) * e.stride_height + covered(e.kernel_height, e.dilation_height)
    right = band.left + (band.pixels - 1) * e.stride_width + covered(e.kernel_width, e.dilation_width)
    is_inside = band.top >= 0 and band.left >= 0 and bottom <= e.height and right <= e.width
    return band.pixels == ROW_PIXELS and band.down == ROW_PIXELS and most >= 2 * ROW_PIXELS and is_inside


def _dense(kind: Convolution) -> Any:
    """Make the function that computes a band with packed panels of filters, those of some tiles.

    Of a panel that takes too much of the cache some rows at a time pass over the band; y has the sums in between.
    """
    pass_over, width, (_, panel_elements, _) = pass_of(kind), kind.width, _layout(kind)
    chunk_elements = kind.chunk_elements

    @inlined()
    def dense(arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, tiles: Range) -> None:
        own, elements = e.filters // e.groups, panel_elements(e)
        each = (own + width - 1) // width
        step = max(chunk_elements // max(e.kernel_width * e.group_channels * PANEL, 1), 1)
        for tile in range(tiles.begin, tiles.end):
            group = tile // each
            first = (tile - group * each) * width
            panel = (group * ((own + PANEL - 1) // PANEL) + first // PANEL) * elements + first % PANEL
            columns = Columns(group * own + first, min(own - first, width), panel, group * e.group_channels)
            for tap in range(0, e.kernel_height, step):
                rows = min(step, e.kernel_height - tap)
                state = (FIRST_CHUNK if tap == 0 else 0) + (LAST_CHUNK if tap + rows == e.kernel_height else 0)
                ends = tile + 1 == tiles.end and tap + rows == e.kernel_height
                pass_over(arrays, e, band, packed, columns, Chunk(tap, rows, state, ends))

    return dense


def _band(kind: Convolution, few: FewFilters) -> Any:
    """Make the function that computes a band, with the filters of some tiles."""
    is_few, has_few, few_compute = _is_few(few), few.segment > 0, few.compute
    dense, depthwise, is_packed = _dense(kind), depthwise_of(kind), kind.is_packed

    @inlined()
    def compute(arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, shared: Any, tiles: Range) -> None:
        if has_few and is_few(e, band.y_pitch):
            few_compute(arrays, e, band, shared)
        elif is_packed:
            dense(arrays, e, band, arrays.w, tiles)
        elif is_depthwise(e):
            depthwise(arrays, e, band)
        else:
            dense(arrays, e, band, packed, tiles)

    return compute


def _rows(kind: Convolution, few: FewFilters) -> Any:
    """Make the function that computes rows of the results, band by band, with the filters of some tiles."""
    band_rows, _, packed_elements = _layout(kind)
    is_few, has_few, few_rows, compute = _is_few(few), few.segment > 0, few.band_rows, _band(kind, few)
    pad_rows, gather_rows, copied_extents = padding_of(kind), gathering_of(kind), copied_extents_of(kind)
    is_copied = copied_of(kind, few.segment)

    @inlined()
    def compute_rows(
        arrays: Images, e: ConvolutionExtents, y_pitch: int, workspace: Any, shared: Any, part: Range, tiles: Range
    ) -> None:
        copy, c = copied_extents(e), e.channels
        copied, most = is_copied(e), band_rows(copy)
        if has_few and is_few(e, y_pitch):
            most = min(most, few_rows(e))
        gathered = copied and is_gathered(e)
        is_long = gathered or is_pointwise(e)
        scratch = offset(workspace, packed_elements(e))
        row, pitch = part.begin, e.width * c
        while row < part.end:
            image, rows = row // e.out_height, min(most, part.end - row)
            first = row - image * e.out_height
            lines, pixels = 1, rows * e.out_width
            if not is_long:
                rows = min(rows, e.out_height - first)
                lines, pixels = rows, e.out_width
            top = first * e.stride_height - e.pad_top
            source, at, step = arrays.x, (image * e.height + top) * pitch - e.pad_left * c, pitch
            if copied:
                source, at, step = scratch, 0, needed_width(copy) * copy.channels
                if gathered:
                    gather_rows(arrays.x, e, copy.channels, row, rows, scratch)
                else:
                    pad_rows(offset(arrays.x, image * e.height * pitch), e, copy.channels, top,
                             needed_height(e, rows), scratch)  # fmt: skip
            end = (image * e.height + top + needed_height(e, rows)) * pitch
            ahead = rows * e.stride_height * pitch if row + rows < part.end else 0
            band = Band(source, at, step, lines, pixels, row * e.out_width, 1, e.out_width, y_pitch, top,
                        0 - e.pad_left, end, ahead)  # fmt: skip
            compute(arrays, copy, band, workspace, shared, tiles)
            row += rows

    return compute_rows


def _body(kind: Convolution, few: FewFilters) -> Callable[..., None]:
    """Make the body. Position p of its range is row p % rows of part p // rows of the filters."""
    band_rows, _, packed_elements = _layout(kind)
    is_few, has_few, prepare, pack, width = _is_few(few), few.segment > 0, few.prepare, _pack(kind), kind.width
    is_copied, copied_elements, copied_extents = (
        copied_of(kind, few.segment),
        _copied_elements(kind),
        copied_extents_of(kind),
    )
    compute_rows, is_packed = _rows(kind, few), kind.is_packed

    def body(arrays: Images, e: ConvolutionExtents, batch: int, y_pitch: int, workspace: Any, part: Range) -> None:
        if not is_packed and not is_depthwise(e):
            pack(arrays.w, e, workspace)
        copy, shared = copied_extents(e), offset(workspace, packed_elements(e))
        if has_few and is_few(e, y_pitch):
            shared = offset(shared, copied_elements(copy, band_rows(copy)) if is_copied(e) else 0)
            prepare(arrays, e, arrays.w if is_packed else workspace, shared)
        rows, tiles = batch * e.out_height, e.groups * ((e.filters // e.groups + width - 1) // width)
        parts = 1
        if part.end - part.begin < MAX_FILTER_SPLITS * rows and not (is_depthwise(e) or has_few and is_few(e, y_pitch)):
            parts = filter_splits(rows, tiles)
        at, end = part.begin * parts // MAX_FILTER_SPLITS, part.end * parts // MAX_FILTER_SPLITS
        while at < end:
            first = at // rows
            count = max((end - at) // rows, 1) if at == first * rows else 1
            stop = min((first + count) * rows, end)
            compute_rows(arrays, e, y_pitch, workspace, shared,
                         Range(at - first * rows, stop - (first + count - 1) * rows),
                         Range(first * tiles // parts, (first + count) * tiles // parts))  # fmt: skip
            at = stop

    return body
