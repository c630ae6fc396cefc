"""Resizing of images: places of pixels in whole numbers, a table of the columns, and rows that are resized once.

Each row of the image that a row of the result needs is resized along its columns into scratch memory, where as many
rows stay as a result is the sum of; the next rows of a result need the same ones, or the next. Sums of whole rows then
run over all their pixels and channels at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.resize import CUBIC
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.microkernel import element_size

MAX_SINGLE_CHANNELS = 4
"""Most channels whose pixels are taken one number at a time, rather than vectors of channels."""


class ResizeExtents(NamedTuple):
    """The integers of the row."""

    height: int
    width: int
    channels: int
    out_height: int
    out_width: int


class Taps(NamedTuple):
    """The first of the pixels that a result is made of, which may lie before the image, and how far behind it."""

    first: int
    t: Any


def _taps_of(attr: Any) -> Any:
    """Make the function from a pixel of the result to its taps along an axis: `count` results of `size` pixels."""
    is_half, is_aligned = attr.coordinates == "half_pixel", attr.coordinates == "align_corners"
    is_nearest, rounding, before = attr.mode == "nearest", attr.rounding, 1 if attr.mode == "cubic" else 0
    is_floor, is_ceil, is_down = rounding == "floor", rounding == "ceil", rounding == "round_prefer_floor"

    @inlined()
    def rounded(above: int, below: int) -> int:
        if is_floor:
            return above // below
        if is_ceil:
            return 0 - (0 - above) // below
        if is_down:
            return 0 - (below - 2 * above) // (2 * below)
        return (2 * above + below) // (2 * below)

    @inlined()
    def taps_of(i: int, size: int, count: int) -> Any:
        above, below = i * size, count
        if is_half:
            above = (2 * i + 1) * size - count
            below = 2 * count
        if is_aligned:
            above = i * (size - 1)
            below = max(count - 1, 1)
        if is_nearest:
            return Taps(rounded(above, below), np.float64(0))
        first = above // below
        return Taps(first - before, np.float64(above - first * below) / np.float64(below))

    return taps_of


@inlined()
def near(x: Any) -> Any:
    return ((np.float64(CUBIC + 2)) * x - np.float64(CUBIC + 3)) * x * x + np.float64(1)


@inlined()
def far(x: Any) -> Any:
    return ((np.float64(CUBIC) * x - np.float64(5 * CUBIC)) * x + np.float64(8 * CUBIC)) * x - np.float64(4 * CUBIC)


def _weight_of(attr: Any) -> Any:
    """Make the function that gives the weight of a tap."""
    is_linear, number = attr.mode == "linear", np.dtype(attr.dtype).type

    @inlined()
    def weight_of(tap: int, t: Any) -> Any:
        if is_linear:
            return number(t if tap == 1 else np.float64(1) - t)
        x = np.float64(1) + t if tap == 0 else t if tap == 1 else np.float64(1) - t if tap == 2 else np.float64(2) - t
        return number(near(x) if tap == 1 or tap == 2 else far(x))

    return weight_of


@inlined()
def clamped(index: int, size: int) -> int:
    return min(max(index, 0), size - 1)


def _columns(attr: Any) -> Any:
    """Make the function that fills the tables of the columns: for each tap their pixels, and then their weights."""
    taps_of, weight_of, taps, is_nearest = _taps_of(attr), _weight_of(attr), attr.taps, attr.mode == "nearest"
    number = np.dtype(attr.dtype).type
    whole = np.int32 if number is np.float32 else np.int64

    @inlined()
    def fill_columns(e: ResizeExtents, table: Any) -> None:
        n = e.out_width
        for j in range(n):
            place = taps_of(j, e.width, n)
            for tap in range(taps):
                table[tap * n + j] = whole(clamped(place.first + tap, e.width)).view(number)
                if not is_nearest:
                    table[(taps + tap) * n + j] = weight_of(tap, place.t)

    return fill_columns


def _resize_row(attr: Any) -> Any:
    """Make the function that resizes one row along its columns."""
    taps, number = attr.taps, np.dtype(attr.dtype).type
    whole = np.int32 if number is np.float32 else np.int64

    @inlined()
    def pixel_of(table: Any, at: int) -> int:
        return np.int64(table[at].view(whole))

    @inlined("contract")
    def one_pixel(x: Any, e: ResizeExtents, table: Any, y: Any, j: int) -> None:
        n, c, to = e.out_width, e.channels, j * e.channels
        first = pixel_of(table, j) * c
        if taps == 1:
            for k in range(c):
                y[to + k] = x[first + k]
        elif taps == 2:
            second, u, v = pixel_of(table, n + j) * c, table[2 * n + j], table[3 * n + j]
            for k in range(c):
                y[to + k] = u * x[first + k] + v * x[second + k]
        else:
            second, third, fourth = (
                pixel_of(table, n + j) * c, pixel_of(table, 2 * n + j) * c, pixel_of(table, 3 * n + j) * c,
            )  # fmt: skip
            p, q, r, s = table[4 * n + j], table[5 * n + j], table[6 * n + j], table[7 * n + j]
            for k in range(c):
                y[to + k] = p * x[first + k] + q * x[second + k] + (r * x[third + k] + s * x[fourth + k])

    @inlined("contract")
    def single_channel(x: Any, n: int, table: Any, y: Any) -> None:
        for j in range(n):
            if taps == 1:
                y[j] = x[pixel_of(table, j)]
            elif taps == 2:
                y[j] = table[2 * n + j] * x[pixel_of(table, j)] + table[3 * n + j] * x[pixel_of(table, n + j)]
            else:
                left = table[4 * n + j] * x[pixel_of(table, j)] + table[5 * n + j] * x[pixel_of(table, n + j)]
                y[j] = left + (
                    table[6 * n + j] * x[pixel_of(table, 2 * n + j)] + table[7 * n + j] * x[pixel_of(table, 3 * n + j)]
                )

    @inlined()
    def resize_row(x: Any, e: ResizeExtents, table: Any, y: Any) -> None:
        if e.channels == 1:
            single_channel(x, e.out_width, table, y)
        else:
            for j in range(e.out_width):
                one_pixel(x, e, table, y, j)

    return resize_row


def _sum_rows(attr: Any) -> Any:
    """Make the function that adds up the rows of a result, which lie in scratch memory."""
    taps, taps_of, weight_of = attr.taps, _taps_of(attr), _weight_of(attr)

    @inlined()
    def slot(index: int, e: ResizeExtents) -> int:
        return clamped(index, e.height) % taps * e.out_width * e.channels

    @inlined("contract")
    def sum_rows(rows: Any, e: ResizeExtents, i: int, y: Any) -> None:
        place, count = taps_of(i, e.height, e.out_height), e.out_width * e.channels
        first, second = slot(place.first, e), slot(place.first + 1, e)
        u, v = weight_of(0, place.t), weight_of(1, place.t)
        if taps == 2:
            for k in range(count):
                y[k] = u * rows[first + k] + v * rows[second + k]
        else:
            third, fourth = slot(place.first + 2, e), slot(place.first + 3, e)
            w, z = weight_of(2, place.t), weight_of(3, place.t)
            for k in range(count):
                y[k] = u * rows[first + k] + v * rows[second + k] + (w * rows[third + k] + z * rows[fourth + k])

    return sum_rows


def _body(attr: Any) -> Callable[..., None]:
    fill_columns, resize_row, sum_rows = _columns(attr), _resize_row(attr), _sum_rows(attr)
    taps, taps_of, is_nearest = attr.taps, _taps_of(attr), attr.mode == "nearest"

    @inlined()
    def copy_row(source: Any, target: Any, count: int) -> None:
        for k in range(count):
            target[k] = source[k]

    def body(x: Any, y: Any, e: ResizeExtents, workspace: Any, part: Range) -> None:
        fill_columns(e, workspace)
        pitch, count, rows = e.width * e.channels, e.out_width * e.channels, offset(workspace, 2 * taps * e.out_width)
        ready, image = 0, 0 - 1
        for row in range(part.begin, part.end):
            i = row % e.out_height
            if row // e.out_height != image:
                image = row // e.out_height
                ready = 0 - 1
            place = taps_of(i, e.height, e.out_height)
            source, target, first = image * e.height * pitch, offset(y, row * count), place.first
            if is_nearest:
                index = clamped(first, e.height)
                if index == ready:
                    copy_row(offset(y, (row - 1) * count), target, count)
                else:
                    resize_row(offset(x, source + index * pitch), e, workspace, target)
                ready = index
            else:
                last = clamped(first + taps - 1, e.height)
                for index in range(max(ready, clamped(first, e.height)), last + 1):
                    resize_row(offset(x, source + index * pitch), e, workspace, offset(rows, index % taps * count))
                ready = max(ready, last + 1)
                sum_rows(rows, e, i, target)

    return body


def resize_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of RESIZE2D for any sizes; threads split the rows of the result."""
    signature, size, taps = attr.signature(), element_size(attr.dtype), attr.taps

    def needed(e: ResizeExtents) -> Any:
        return (2 * taps * e.out_width + (0 if taps == 1 else taps * e.out_width * e.channels)) * size

    return RangeKernel(
        f"{attr.name}_{attr.mode}_{attr.coordinates}_{attr.dtype}",
        signature.c_arguments,
        _body(attr),
        extent=(signature.index("batch"), signature.index("out_height")),
        block=max(-(-attr.batch * attr.out_height // 64), 1) if parallel else 1,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
        flags=("contract",),
        vector_bytes=cpu_target.target().lanes(attr.dtype) * size,
        names=signature.names,
    )
