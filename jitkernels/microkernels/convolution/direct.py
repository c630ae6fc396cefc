"""Direct convolution: the loops around the register tile, packed filters, and padded rows.

For each band of rows of the result, the rows of the image that it needs are copied between zeros, unless they need no
padding; then each panel of filters passes over the band while that lies in the cache.  Filters are packed once per
call, unless they come packed.  A filter of one pixel without strides and padding sees one long row of pixels.  Where
the filters would leave half of a vector unused, pixels share it (`jitkernels.microkernels.convolution.few_filters`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.convolution.depthwise import depthwise_of
from jitkernels.microkernels.convolution.extents import (
    TILE_VECTORS,
    Band,
    Chunk,
    Columns,
    Convolution,
    ConvolutionExtents,
    Images,
    convolution_of,
    finisher_of,
    is_depthwise,
    is_padded,
    is_pointwise,
    needed_height,
    needed_width,
    tile_of,
)
from jitkernels.microkernels.convolution.few_filters import NO_FEW_FILTERS, FewFilters, few_filters
from jitkernels.microkernels.convolution.padding import padding_of, padding_slack
from jitkernels.microkernels.convolution.tile import FIRST_CHUNK, LAST_CHUNK, ROW_PIXELS
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack


def convolution_kernel(attr: Any, *, is_packed: bool, parallel: bool, segment: int) -> RangeKernel:
    """Make the loop nest of CONV2D or CONV2D_PACKED for any sizes; threads split the rows of the result.

    Where there are no more filters than `segment`, pixels share vectors, with so many lanes for each; 0: nowhere.
    """
    kind = convolution_of(attr, cpu_target.target(), is_packed=is_packed, has_residual=attr.has_residual)
    few = few_filters(kind, segment) if segment else NO_FEW_FILTERS
    size, signature = element_size(kind.dtype), attr.signature()
    rows = attr.batch * attr.out_height
    return RangeKernel(
        f"{attr.name}_{attr.activation}_{attr.dtype}",
        signature.c_arguments,
        _body(kind, few),
        extent=(signature.index("batch"), signature.index("out_height")),
        block=max(-(-rows // 64), 1) if parallel else 1,
        parallel=parallel,
        workspace=_workspace(kind, few),
        workspace_dtype=kind.dtype,
        flags=("contract",),
        vector_bytes=kind.lanes * size,
        straight=True,
        pitched=not attr.has_residual,  # tiles find a residual where they find y
        names=signature.names,
    )


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
    size, slack = element_size(kind.dtype), padding_slack(kind)

    def needed(e: ConvolutionExtents) -> Any:
        scratch = needed_height(e, band_rows(e)) * needed_width(e) * e.channels + slack if is_padded(e) else 0
        shared = 0
        if has_few and is_few(e, e.filters):
            shared = elements(e)
        return (packed_elements(e) + scratch + shared) * size

    return needed


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


def pass_of(kind: Convolution) -> Any:
    """Make the function that passes some rows of a panel of filters over a band."""
    wide = tile_of(kind, "convolution_wide", kind.pixels, TILE_VECTORS, panel=PANEL)
    narrow = tile_of(kind, "convolution_narrow", kind.pixels, 1, panel=PANEL)
    lanes, most, finish_pixels = kind.lanes, kind.pixels, finisher_of(kind)

    @inlined()
    def pass_over(
        arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, columns: Columns, chunk: Chunk
    ) -> None:
        y, image, f = arrays.y, band.image, columns.first
        bias = y if arrays.bias is None else arrays.bias
        residual = y if arrays.residual is None else arrays.residual
        c, is_one_run, live = e.channels, e.groups == 1 and e.dilation_width == 1, columns.live
        runs = 1 if is_one_run else e.kernel_width
        run = e.kernel_width * c if is_one_run else e.group_channels
        pixel, down, right = e.stride_width * c, e.dilation_height * band.pitch, e.dilation_width * c
        w = columns.panel + chunk.first * e.kernel_width * e.group_channels * PANEL
        pitch, lead, step = e.stride_height * band.pitch, ROW_PIXELS * pixel, 1
        apart = band.apart * band.y_pitch
        if band.pixels == ROW_PIXELS and band.down == ROW_PIXELS and most >= 2 * ROW_PIXELS:
            lead, step = pitch, 2
        tile_steps = chunk.rows * runs * run
        tiles = (band.rows + step - 1) // step * ((band.pixels * step + most - 1) // most)
        ahead, stride = w + tile_steps * PANEL, (PANEL + tiles - 1) // tiles
        for i in range(0, band.rows, step):
            row, done = band.at + i * pitch + chunk.first * down + columns.channel, 0
            pixels = band.pixels * min(step, band.rows - i)
            count = (pixels + most - 1) // most
            for part in range(count):
                n = (pixels - done + count - part - 1) // (count - part)
                x, at = row + done * pixel, (band.first + i * band.down) * band.y_pitch + done * apart + f
                if live > lanes:
                    wide(image, x, pixel, lead, chunk.rows, down, runs, right, run, packed, w, 0, ahead, stride, bias,
                         f, residual, y, at, apart, live, n, chunk.state)  # fmt: skip
                else:
                    narrow(image, x, pixel, lead, chunk.rows, down, runs, right, run, packed, w, 0, ahead, stride, bias,
                           f, residual, y, at, apart, live, n, chunk.state)  # fmt: skip
                if chunk.state >= LAST_CHUNK:
                    finish_pixels(y, at, apart, live, n)
                ahead += tile_steps * stride
                done += n

    return pass_over


def _dense(kind: Convolution) -> Any:
    """Make the function that computes a band with packed panels of filters.

    Of a panel that takes too much of the cache some rows at a time pass over the band; y has the sums in between.
    """
    pass_over, width, (_, panel_elements, _) = pass_of(kind), kind.width, _layout(kind)
    chunk_elements = kind.chunk_elements

    @inlined()
    def dense(arrays: Images, e: ConvolutionExtents, band: Band, packed: Any) -> None:
        own, elements = e.filters // e.groups, panel_elements(e)
        step = max(chunk_elements // max(e.kernel_width * e.group_channels * PANEL, 1), 1)
        for group in range(e.groups):
            begin = group * ((own + PANEL - 1) // PANEL) * elements
            for first in range(0, own, width):
                panel = begin + first // PANEL * elements + first % PANEL
                columns = Columns(group * own + first, min(own - first, width), panel, group * e.group_channels)
                for tap in range(0, e.kernel_height, step):
                    rows = min(step, e.kernel_height - tap)
                    state = (FIRST_CHUNK if tap == 0 else 0) + (LAST_CHUNK if tap + rows == e.kernel_height else 0)
                    pass_over(arrays, e, band, packed, columns, Chunk(tap, rows, state))

    return dense


def _body(kind: Convolution, few: FewFilters) -> Callable[..., None]:
    band_rows, _, packed_elements = _layout(kind)
    is_few, has_few = _is_few(few), few.segment > 0
    few_rows, prepare, few_compute = few.band_rows, few.prepare, few.compute
    pack, dense, depthwise, is_packed = _pack(kind), _dense(kind), depthwise_of(kind), kind.is_packed
    pad_rows, slack = padding_of(kind), padding_slack(kind)

    @inlined()
    def compute(arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, shared: Any) -> None:
        if has_few and is_few(e, band.y_pitch):
            few_compute(arrays, e, band, shared)
        elif is_packed:
            dense(arrays, e, band, arrays.w)
        elif is_depthwise(e):
            depthwise(arrays, e, band)
        else:
            dense(arrays, e, band, packed)

    def body(arrays: Images, e: ConvolutionExtents, y_pitch: int, workspace: Any, part: Range) -> None:
        if not is_packed and not is_depthwise(e):
            pack(arrays.w, e, workspace)
        most, padded, pointwise = band_rows(e), is_padded(e), is_pointwise(e)
        scratch, x = offset(workspace, packed_elements(e)), arrays.x
        shared = scratch
        if has_few and is_few(e, y_pitch):
            shared = offset(scratch, needed_height(e, most) * needed_width(e) * e.channels + slack if padded else 0)
            most = min(most, few_rows(e))
            prepare(arrays, e, arrays.w if is_packed else workspace, shared)
        row, size, pitch = part.begin, e.height * e.width * e.channels, e.width * e.channels
        while row < part.end:
            image, rows = row // e.out_height, min(most, part.end - row)
            first = row - image * e.out_height
            top, to = first * e.stride_height - e.pad_top, row * e.out_width
            if not pointwise:
                rows = min(rows, e.out_height - first)
            if pointwise:
                band = Band(x, row * pitch, pitch, 1, rows * e.out_width, to, 1, e.out_width, y_pitch)
                compute(arrays, e, band, workspace, shared)
            elif padded:
                pad_rows(offset(x, image * size), e, top, needed_height(e, rows), scratch)
                band = Band(scratch, 0, needed_width(e) * e.channels, rows, e.out_width, to, 1, e.out_width, y_pitch)
                compute(arrays, e, band, workspace, shared)
            else:
                band = Band(x, image * size + top * pitch, pitch, rows, e.out_width, to, 1, e.out_width, y_pitch)
                compute(arrays, e, band, workspace, shared)
            row += rows

    return body
