"""Pooling: the loops around the windows, cut to what lies inside of the image.

Those of a row that lie inside as a whole have the same taps, and are pooled together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, written_by
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.convolution.pool_columns import COLUMNS, ColumnTile
from jitkernels.microkernels.convolution.pool_tile import POOL_ARGUMENTS, PoolTile
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size

CHANNEL_VECTORS = 4
"""Vectors of channels of a window that are pooled at once."""


class PoolExtents(NamedTuple):
    """The integers of the row."""

    height: int
    width: int
    channels: int
    out_height: int
    out_width: int
    window_height: int
    window_width: int
    stride_height: int
    stride_width: int
    pad_top: int
    pad_left: int
    pad_bottom: int
    pad_right: int
    dilation_height: int
    dilation_width: int


class Axis(NamedTuple):
    """Windows along one axis: the extents of image and window, dilation, and how much padding counts on either side."""

    size: int
    window: int
    dilation: int
    before: int
    after: int


class Taps(NamedTuple):
    """The taps of a window inside of the image, and how many count."""

    first: int
    last: int
    counted: int


class Windows(NamedTuple):
    """Windows of the same taps, pooled together: arguments of `pool_tile`."""

    rows: int
    row_stride: int
    taps: int
    tap_stride: int
    live: int
    counted: int
    windows: int
    x_window: int
    y_window: int
    ahead: int


@inlined()
def taps_from(begin: int, axis: Axis) -> Any:
    """Return the taps of the window that begins at an index of the image, which is negative in the padding."""
    if begin >= 0 and begin + (axis.window - 1) * axis.dilation < axis.size:
        return Taps(0, axis.window, axis.window)
    first = max((axis.dilation - 1 - begin) // axis.dilation, 0)
    last = min((axis.size - begin + axis.dilation - 1) // axis.dilation, axis.window)
    least = max((axis.dilation - 1 - begin - axis.before) // axis.dilation, 0)
    most = min((axis.size + axis.after - begin + axis.dilation - 1) // axis.dilation, axis.window)
    return Taps(min(first, axis.window), max(last, 0), max(most - least, 0))


def _half(lanes: int) -> int:
    """Return the lanes of few channels: some processors compute half of the widest vectors twice as fast."""
    return max(lanes // 2, 2)


def _tiles(dtype: str, lanes: int, *, mean: bool) -> Any:
    """Make the function that pools several vectors of channels, or a part of one, of windows.

    `stride`: that of windows of three columns, which share columns; 0 for others.
    """

    def function(symbol: str, lanes: int, vectors: int, *, masked: bool, stride: int = 0) -> Any:
        tile = PoolTile(symbol, dtype, lanes, vectors, mean, masked)
        if stride:
            tile = ColumnTile(symbol, dtype, lanes, vectors, mean, masked, stride)
        pool = ir_function(symbol, dtype, POOL_ARGUMENTS, written_by(type(tile).text, tile))

        @inlined()
        def windows(x: Any, x_offset: int, y: Any, y_offset: int, w: Windows) -> None:
            pool(x, x_offset, w.rows, w.row_stride, w.taps, w.tap_stride, y, y_offset, w.live, w.counted, w.windows,
                 w.x_window, w.y_window, w.ahead)  # fmt: skip

        return windows

    whole = function("pool_whole", lanes, CHANNEL_VECTORS, masked=False)
    part = function("pool_part", lanes, 1, masked=True)
    half, half_lanes = function("pool_half", _half(lanes), 1, masked=True), _half(lanes)
    whole_1 = function("pool_columns_whole_1", lanes, CHANNEL_VECTORS, masked=False, stride=1)
    whole_2 = function("pool_columns_whole_2", lanes, CHANNEL_VECTORS, masked=False, stride=2)
    part_1 = function("pool_columns_part_1", lanes, 1, masked=True, stride=1)
    part_2 = function("pool_columns_part_2", lanes, 1, masked=True, stride=2)

    @inlined()
    def pool(x: Any, x_offset: int, y: Any, y_offset: int, w: Windows, stride: int) -> None:
        if w.live > lanes:
            if stride == 1:
                whole_1(x, x_offset, y, y_offset, w)
            elif stride == 2:
                whole_2(x, x_offset, y, y_offset, w)
            else:
                whole(x, x_offset, y, y_offset, w)
        elif stride == 1:
            part_1(x, x_offset, y, y_offset, w)
        elif stride == 2:
            part_2(x, x_offset, y, y_offset, w)
        elif w.live <= half_lanes:
            half(x, x_offset, y, y_offset, w)
        else:
            part(x, x_offset, y, y_offset, w)

    return pool


def pool_kernel(attr: Any, *, mean: bool, counts_padding: bool, parallel: bool) -> RangeKernel:
    """Make the loop nest of MAX_POOL2D or AVG_POOL2D for any sizes; threads split the rows of the result."""
    target, signature = cpu_target.target(), attr.signature()
    lanes, counted = target.lanes(attr.dtype), int(counts_padding)
    near_elements = cpu_target.l2_cache_bytes() // 2 // element_size(attr.dtype)

    pool = _tiles(attr.dtype, lanes, mean=mean)
    width = CHANNEL_VECTORS * lanes

    def body(x: Any, y: Any, e: PoolExtents, y_pitch: int, part: Range) -> None:
        c = e.channels
        # Blocks of channels lie apart, which hardware does not prefetch: from beyond the L2 cache, at a stride of 1, a
        # mean took twice the time. At larger strides each window would prefetch as many lines as it loads.
        is_far = (part.end - part.begin) * e.stride_height * e.width * c > near_elements
        prefetches = is_far and c > width and e.stride_width * e.stride_height == 1
        down = Axis(e.height, e.window_height, e.dilation_height, counted * e.pad_top, counted * e.pad_bottom)
        right = Axis(e.width, e.window_width, e.dilation_width, counted * e.pad_left, counted * e.pad_right)
        # The first window behind those that lie inside as a whole.
        most = e.width - 1 - (e.window_width - 1) * e.dilation_width + e.pad_left
        inside = min(most // e.stride_width + 1, e.out_width)
        for row in range(part.begin, part.end):
            image = row // e.out_height
            top = (row - image * e.out_height) * e.stride_height - e.pad_top
            rows = taps_from(top, down)
            # From the first tap, the first row below the window, where the next one's begin.
            ahead = (e.window_height - rows.first) * e.dilation_height * e.width * c if prefetches else 0
            j = 0
            while j < e.out_width:
                left = j * e.stride_width - e.pad_left
                columns = taps_from(left, right)
                windows = inside - j if left >= 0 and inside > j else 1
                above = image * e.height + top + rows.first * e.dilation_height
                at = (above * e.width + left + columns.first * e.dilation_width) * c
                to, done = (row * e.out_width + j) * y_pitch, 0
                count, taps = rows.last - rows.first, columns.last - columns.first
                by_columns = (e.window_width == COLUMNS) & (e.dilation_width == 1) & (windows > 1) & (count > 0)
                stride = e.stride_width if by_columns else 0
                while done < c:
                    live = min(c - done, width if c - done >= width else lanes)
                    run = Windows(
                        count, e.dilation_height * e.width * c, taps, e.dilation_width * c, live,
                        rows.counted * columns.counted, windows, e.stride_width * c, y_pitch, ahead,
                    )  # fmt: skip
                    pool(x, at + done, y, to + done, run, stride)
                    done += live
                j += windows

    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=(signature.index("batch"), signature.index("out_height")),
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        flags=("contract",),
        vector_bytes=lanes * element_size(attr.dtype),
        straight=True,
        pitched=True,
        names=signature.names,
    )
