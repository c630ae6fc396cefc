"""Transposed convolution: the loops around the register tiles of a convolution, phase by phase of the strides.

The pixels of the result whose place has the same remainder by the strides are a phase. They meet the same taps of the
filters, every `apart`-th one, at neighbours of the image, so that a phase is a convolution without strides whose
results lie a stride apart. Filters are packed phase by phase, and all phases read the same padded copy of the image.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.attrs.filter_panels import PANEL
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.convolution.depthwise import depthwise_of
from jitkernels.microkernels.convolution.direct import pass_of
from jitkernels.microkernels.convolution.extents import (
    Band,
    Chunk,
    Columns,
    Convolution,
    ConvolutionExtents,
    Images,
    convolution_of,
    is_depthwise,
)
from jitkernels.microkernels.convolution.image_copies import padding_of, padding_slack
from jitkernels.microkernels.convolution.stride_phases import (
    ImageRows,
    StridedAxis,
    down_axis,
    first_neighbour,
    last_neighbour,
    phase_of,
    right_axis,
    tap_reach,
    taps_of_class,
)
from jitkernels.microkernels.convolution.tile_text import FIRST_CHUNK, LAST_CHUNK
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel, packing_slack


class TransposedImages(NamedTuple):
    """The arrays; bias is None where there is none."""

    x: Any
    w: Any
    bias: Any
    y: Any


def transposed_kernel(attr: Any, *, is_packed: bool, parallel: bool) -> RangeKernel:
    """Make the loop nest of CONV2D_TRANSPOSE or its packed form for any sizes; threads split the rows of the result."""
    kind = convolution_of(attr, cpu_target.target(), is_packed=is_packed)
    size, signature = element_size(kind.dtype), attr.signature()
    return RangeKernel(
        f"{attr.name}_{attr.activation}_{attr.dtype}",
        signature.c_arguments,
        _body(kind),
        extent=(signature.index("batch"), signature.index("out_height")),
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        workspace=_workspace(kind),
        workspace_dtype=kind.dtype,
        flags=("contract",),
        vector_bytes=kind.lanes * size,
        straight=True,
        names=signature.names,
    )


@inlined()
def panel_elements(e: ConvolutionExtents) -> int:
    return e.kernel_height * e.kernel_width * e.group_channels * PANEL


@inlined()
def copied_left(right: StridedAxis) -> int:
    """Return the column of the image at which padded copies begin: the first that a pixel meets, at most 0."""
    return min(first_neighbour(right), 0)


@inlined()
def copied_width(right: StridedAxis) -> int:
    """Return the pixels of a row of a padded copy."""
    return last_neighbour(right) - copied_left(right) + 1


def _layout(kind: Convolution) -> tuple[Any, Any]:
    """Make the functions that give the rows of a band, and the elements of all packed filters."""
    slack, band_elements, is_packed = packing_slack(kind.lanes, PANEL), kind.band_elements, kind.is_packed

    @inlined()
    def band_rows(e: ConvolutionExtents) -> int:
        # As of a convolution: the results of a band stay in the cache, too, until all phases have written theirs.
        down, right = down_axis(e), right_axis(e)
        copied = copied_width(right) * e.channels
        row = copied + e.stride_height * e.out_width * e.filters
        most = max((band_elements - tap_reach(down) * copied) // max(row, 1), 1)
        rows = (e.out_height + e.stride_height - 1) // e.stride_height
        bands = (rows + most - 1) // most
        return (rows + bands - 1) // bands * e.stride_height

    @inlined()
    def packed_elements(e: ConvolutionExtents) -> int:
        panels = e.groups * ((e.filters // e.groups + PANEL - 1) // PANEL)
        if is_packed:
            return 0
        elements = panels * panel_elements(e) + slack
        if is_depthwise(e):
            elements = e.kernel_height * e.kernel_width * e.channels
        return (elements + 63) // 64 * 64

    return band_rows, packed_elements


def _workspace(kind: Convolution) -> Callable[..., Any]:
    band_rows, packed_elements = _layout(kind)
    size, slack = element_size(kind.dtype), padding_slack(kind)

    def needed(e: ConvolutionExtents) -> Any:
        down, right = down_axis(e), right_axis(e)
        rows = tap_reach(down) + band_rows(e) // e.stride_height + 1
        return (packed_elements(e) + rows * copied_width(right) * e.channels + slack) * size

    return needed


def _pack(kind: Convolution) -> Any:
    """Make the function that packs all filters into panels, the taps of a phase together and in falling order."""
    text = written_by(copy_panel, "convolution_pack", kind.dtype, kind.lanes, PANEL)
    pack_panel = ir_function("convolution_pack", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def copy_tap(w: Any, e: ConvolutionExtents, tap: int, column: int, workspace: Any, target: int) -> int:
        depth = e.group_channels
        if is_depthwise(e):
            for k in range(e.channels):
                workspace[target + k] = w[tap * e.channels + k]
            return target + e.channels
        own = e.filters // e.groups
        live = own - column % own
        pack_panel(w, tap * depth * e.filters + column, e.filters, workspace, target, live, depth)
        return target + depth * PANEL

    @inlined()
    def pack_taps(w: Any, e: ConvolutionExtents, column: int, workspace: Any, target: int) -> int:
        down, right = down_axis(e), right_axis(e)
        for top in range(min(down.apart, e.kernel_height)):
            rows = taps_of_class(down, top)
            for left in range(min(right.apart, e.kernel_width)):
                columns = taps_of_class(right, left)
                for tap in range(rows * columns):
                    a = top + down.apart * (rows - 1 - tap // columns)
                    b = left + right.apart * (columns - 1 - tap % columns)
                    target = copy_tap(w, e, a * e.kernel_width + b, column, workspace, target)
        return target

    @inlined()
    def pack(w: Any, e: ConvolutionExtents, workspace: Any) -> None:
        own, target = e.filters // e.groups, 0
        if is_depthwise(e):
            pack_taps(w, e, 0, workspace, 0)
        else:
            for group in range(e.groups):
                for first in range(0, own, PANEL):
                    target = pack_taps(w, e, group * own + first, workspace, target)

    return pack


@inlined()
def phase_extents(e: ConvolutionExtents, rows: Any, columns: Any) -> Any:
    """Return the convolution that a phase is; without taps one of no channels, which leaves the bias."""
    if rows.taps * columns.taps == 0:
        return ConvolutionExtents(0, 0, 0, 1, 1, e.filters, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1)
    return ConvolutionExtents(
        e.height, e.width, e.channels, rows.taps, columns.taps, e.filters, e.groups, e.group_channels,
        1, 1, 1, 1, 0, 0, rows.skip, columns.skip,
    )  # fmt: skip


def _dense(kind: Convolution) -> Any:
    """Make the function that computes one phase of a band for a panel of filters, in chunks of the rows of taps."""
    pass_over, chunk_elements = pass_of(kind), kind.chunk_elements

    @inlined()
    def dense(arrays: Images, e: ConvolutionExtents, band: Band, packed: Any, columns: Columns) -> None:
        step = max(chunk_elements // max(e.kernel_width * e.group_channels * PANEL, 1), 1)
        for tap in range(0, e.kernel_height, step):
            rows = min(step, e.kernel_height - tap)
            state = (FIRST_CHUNK if tap == 0 else 0) + (LAST_CHUNK if tap + rows == e.kernel_height else 0)
            pass_over(arrays, e, band, packed, columns, Chunk(tap, rows, state, False))

    return dense


@inlined()
def band_of(e: ConvolutionExtents, source: ImageRows, rows: Any, columns: Any) -> Any:
    """Return the band of a phase: its pixels of the rows that `source` is for."""
    at = (rows.start - source.top) * source.pitch + (columns.start - source.left) * e.channels
    if rows.taps * columns.taps == 0:
        at = 0
    high = (source.rows - rows.place + e.stride_height - 1) // e.stride_height
    wide = (e.out_width - columns.place + e.stride_width - 1) // e.stride_width
    first = (source.row + rows.place) * e.out_width + columns.place
    return Band(
        source.image, at, source.pitch, high, wide, first, e.stride_width, e.stride_height * e.out_width, e.filters,
        rows.start, columns.start, 0, 0,
    )  # fmt: skip


def _compute(kind: Convolution) -> Any:
    """Make the function that computes all phases of some rows of the result."""
    dense, depthwise, width, is_packed = _dense(kind), depthwise_of(kind), kind.width, kind.is_packed

    @inlined()
    def panels(arrays: Images, e: ConvolutionExtents, source: ImageRows, packed: Any, group: int) -> None:
        own, elements = e.filters // e.groups, panel_elements(e)
        begin = group * ((own + PANEL - 1) // PANEL) * elements
        for first in range(0, own, width):
            panel = begin + first // PANEL * elements + first % PANEL
            for i in range(min(e.stride_height, source.rows)):
                rows = phase_of(down_axis(e), i, source.first + i)
                for j in range(min(e.stride_width, e.out_width)):
                    right = phase_of(right_axis(e), j, j)
                    before = (rows.before * e.kernel_width + rows.taps * right.before) * e.group_channels * PANEL
                    columns = Columns(
                        group * own + first, min(own - first, width), panel + before, group * e.group_channels
                    )
                    dense(arrays, phase_extents(e, rows, right), band_of(e, source, rows, right), packed, columns)

    @inlined()
    def channels(arrays: Images, e: ConvolutionExtents, source: ImageRows, packed: Any) -> None:
        for i in range(min(e.stride_height, source.rows)):
            rows = phase_of(down_axis(e), i, source.first + i)
            for j in range(min(e.stride_width, e.out_width)):
                right = phase_of(right_axis(e), j, j)
                band, phase = band_of(e, source, rows, right), phase_extents(e, rows, right)
                if rows.taps * right.taps > 0:
                    before = (rows.before * e.kernel_width + rows.taps * right.before) * e.channels
                    depthwise(Images(arrays.x, offset(packed, before), arrays.bias, None, arrays.y), phase, band)
                else:
                    for first in range(0, e.filters, width):
                        dense(arrays, phase, band, packed, Columns(first, min(e.filters - first, width), 0, 0))

    @inlined()
    def compute(arrays: Images, e: ConvolutionExtents, source: ImageRows, packed: Any) -> None:
        if not is_packed and is_depthwise(e):
            channels(arrays, e, source, packed)
        else:
            for group in range(e.groups):
                panels(arrays, e, source, packed, group)

    return compute


def _body(kind: Convolution) -> Callable[..., None]:
    (band_rows, packed_elements), is_packed = _layout(kind), kind.is_packed
    pack, compute, pad_rows = _pack(kind), _compute(kind), padding_of(kind)

    def body(arrays: TransposedImages, e: ConvolutionExtents, workspace: Any, part: Range) -> None:
        if not is_packed:
            pack(arrays.w, e, workspace)
        packed = arrays.w if is_packed else workspace
        images = Images(arrays.x, arrays.w, arrays.bias, None, arrays.y)
        down, right, most, scratch = down_axis(e), right_axis(e), band_rows(e), offset(workspace, packed_elements(e))
        inside = first_neighbour(down) >= 0 and last_neighbour(down) < e.height
        inside = inside and first_neighbour(right) >= 0 and last_neighbour(right) < e.width
        left, wide, c, row = copied_left(right), copied_width(right), e.channels, part.begin
        copied = ConvolutionExtents(e.height, e.width, c, 1, 1, c, 1, c, 1, wide, 1, 1, 0, 0 - left, 1, 1)
        while row < part.end:
            image = row // e.out_height
            first, x = row - image * e.out_height, offset(arrays.x, image * e.height * e.width * c)
            rows = min(most, part.end - row, e.out_height - first)
            top = (first + e.pad_top) // e.stride_height - tap_reach(down)
            bottom = (first + rows - 1 + e.pad_top) // e.stride_height
            if inside:
                compute(images, e, ImageRows(x, 0, 0, e.width * c, row, first, rows), packed)
            else:
                pad_rows(x, copied, c, top, bottom - top + 1, scratch)
                compute(images, e, ImageRows(scratch, top, left, wide * c, row, first, rows), packed)
            row += rows

    return body
