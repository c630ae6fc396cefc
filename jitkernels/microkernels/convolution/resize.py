"""Resizing of images: places of pixels in whole numbers, a table of the columns, and rows that are resized once.

Each row of the image that a row of the result needs is resized along its columns into scratch memory, where as many
rows stay as a result is the sum of; the next rows of a result need the same ones, or the next. Sums of whole rows run
over all their pixels and channels at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.resize import CUBIC
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.gemm.microkernel import element_size


class ResizeExtents(NamedTuple):
    """The integers of the row."""

    height: int
    width: int
    channels: int
    out_height: int
    out_width: int


class Tables(NamedTuple):
    """The tables of columns and rows, and scratch memory for the rows that a result is the sum of."""

    columns: Any
    rows: Any
    scratch: Any


class OneRow(NamedTuple):
    """A row of the result, of how many, and the elements of the rows that it is the sum of."""

    row: int
    rows: int
    elements: int


class Place(NamedTuple):
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
            return Place(rounded(above, below), np.float64(0))
        first = above // below
        return Place(first - before, np.float64(above - first * below) / np.float64(below))

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


def _tables(attr: Any) -> Any:
    """Make the function that fills the table of an axis: for each tap the pixels of all results, then the weights."""
    taps_of, weight_of, taps, is_nearest = _taps_of(attr), _weight_of(attr), attr.taps, attr.mode == "nearest"
    number = np.dtype(attr.dtype).type
    whole = np.int32 if number is np.float32 else np.int64

    @inlined()
    def fill(size: int, count: int, table: Any) -> None:
        for j in range(count):
            place = taps_of(j, size, count)
            for tap in range(taps):
                table[tap * count + j] = whole(clamped(place.first + tap, size)).view(number)
                if not is_nearest:
                    table[(taps + tap) * count + j] = weight_of(tap, place.t)

    return fill


def _pixel_of(attr: Any) -> Any:
    """Make the function that reads a pixel from a table."""
    whole = np.int32 if attr.dtype == "float32" else np.int64

    @inlined()
    def pixel_of(table: Any, at: int) -> Any:
        return np.int64(table[at].view(whole))

    return pixel_of


def _resize_row(attr: Any) -> Any:
    """Make the function that resizes one row along its columns."""
    taps = attr.taps
    pixel_of = _pixel_of(attr)

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
    """Make the function that adds up the rows that a row of the result is made of.

    They are those of the tables, `apart` elements apart, or their remainders by the number of taps in scratch memory.
    """
    taps, pixel_of = attr.taps, _pixel_of(attr)

    @inlined()
    def at(tables: Tables, place: int, wrapped: bool, apart: int) -> Any:
        index = pixel_of(tables.rows, place)
        return (index % taps if wrapped else index) * apart

    @inlined("contract")
    def sum_rows(rows: Any, tables: Tables, one: OneRow, wrapped: bool, y: Any) -> None:
        n, i, table = one.rows, one.row, tables.rows
        first, second = at(tables, i, wrapped, one.elements), at(tables, n + i, wrapped, one.elements)
        if taps == 2:
            u, v = table[2 * n + i], table[3 * n + i]
            for k in range(one.elements):
                y[k] = u * rows[first + k] + v * rows[second + k]
        else:
            third, fourth = at(tables, 2 * n + i, wrapped, one.elements), at(tables, 3 * n + i, wrapped, one.elements)
            p, q, r, s = table[4 * n + i], table[5 * n + i], table[6 * n + i], table[7 * n + i]
            for k in range(one.elements):
                y[k] = p * rows[first + k] + q * rows[second + k] + (r * rows[third + k] + s * rows[fourth + k])

    return sum_rows


def _nearest_rows(attr: Any) -> Any:
    """Make the function that computes some rows of a result by their nearest pixels; equal rows are copied."""
    resize_row, pixel_of = _resize_row(attr), _pixel_of(attr)

    @inlined()
    def is_doubled(e: ResizeExtents, columns: Any) -> bool:
        found = e.channels == 1 and e.out_width == 2 * e.width
        for j in range(e.out_width if found else 0):
            found = found and pixel_of(columns, j) == j // 2
        return found

    @inlined()
    def double_row(x: Any, y: Any, count: int) -> None:
        for j in range(count):
            value = x[j]
            y[2 * j] = value
            y[2 * j + 1] = value

    @inlined()
    def copy_row(source: Any, target: Any, count: int) -> None:
        for k in range(count):
            target[k] = source[k]

    @inlined()
    def nearest_rows(x: Any, y: Any, e: ResizeExtents, tables: Tables, part: Range) -> None:
        doubled, count, before = is_doubled(e, tables.columns), e.out_width * e.channels, 0 - 1
        for i in range(part.begin, part.end):
            index, target = pixel_of(tables.rows, i), offset(y, i * count)
            source = offset(x, index * e.width * e.channels)
            if index == before:
                copy_row(offset(y, (i - 1) * count), target, count)
            elif doubled:
                double_row(source, target, e.width)
            else:
                resize_row(source, e, tables.columns, target)
            before = index

    return nearest_rows


def _interpolated_rows(attr: Any) -> Any:
    """Make the function that computes some rows of a result as sums of rows of the image.

    Where no two results share a row, sums of rows come first: then one row is resized for each result.
    """
    taps, resize_row, sum_rows, pixel_of = attr.taps, _resize_row(attr), _sum_rows(attr), _pixel_of(attr)

    @inlined()
    def interpolated_rows(x: Any, y: Any, e: ResizeExtents, tables: Tables, part: Range) -> None:
        ready, pitch, count = 0, e.width * e.channels, e.out_width * e.channels
        for i in range(part.begin, part.end):
            target = offset(y, i * count)
            if e.height >= taps * e.out_height:
                sum_rows(x, tables, OneRow(i, e.out_height, pitch), False, tables.scratch)
                resize_row(tables.scratch, e, tables.columns, target)
            else:
                first, last = pixel_of(tables.rows, i), pixel_of(tables.rows, (taps - 1) * e.out_height + i)
                for index in range(max(ready, first), last + 1):
                    row = offset(tables.scratch, index % taps * count)
                    resize_row(offset(x, index * pitch), e, tables.columns, row)
                ready = max(ready, last + 1)
                sum_rows(tables.scratch, tables, OneRow(i, e.out_height, count), True, target)

    return interpolated_rows


def _body(attr: Any) -> Callable[..., None]:
    fill, rows_of = _tables(attr), _nearest_rows(attr) if attr.mode == "nearest" else _interpolated_rows(attr)
    taps = attr.taps

    def body(x: Any, y: Any, e: ResizeExtents, workspace: Any, part: Range) -> None:
        columns, rows = workspace, offset(workspace, 2 * taps * e.out_width)
        fill(e.width, e.out_width, columns)
        fill(e.height, e.out_height, rows)
        tables = Tables(columns, rows, offset(workspace, 2 * taps * (e.out_width + e.out_height)))
        row = part.begin
        while row < part.end:
            image = row // e.out_height
            first = row - image * e.out_height
            count = min(e.out_height - first, part.end - row)
            source = offset(x, image * e.height * e.width * e.channels)
            target = offset(y, image * e.out_height * e.out_width * e.channels)
            rows_of(source, target, e, tables, Range(first, first + count))
            row += count

    return body


def resize_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of RESIZE2D for any sizes; threads split the rows of the result."""
    signature, size, taps = attr.signature(), element_size(attr.dtype), attr.taps

    def needed(e: ResizeExtents) -> Any:
        scratch = max(taps * e.out_width, e.width) * e.channels
        return (2 * taps * (e.out_width + e.out_height) + (0 if taps == 1 else scratch)) * size

    return RangeKernel(
        f"{attr.name}_{attr.mode}_{attr.coordinates}_{attr.dtype}",
        signature.c_arguments,
        _body(attr),
        extent=(signature.index("batch"), signature.index("out_height")),
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
        flags=("contract",),
        vector_bytes=cpu_target.target().lanes(attr.dtype) * size,
        names=signature.names,
    )
