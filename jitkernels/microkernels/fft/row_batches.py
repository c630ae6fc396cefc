"""Transforms of several short rows, or of few columns of several matrices: one by one, or beside each other.

What is faster follows from estimates of the plan. Beside each other, transforms of different rows fill a vector: their
numbers are copied to a buffer of as many columns as a vector has lanes.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.bluestein import rows_of
from jitkernels.microkernels.fft.columns import columns_of
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.pass_costs import COPY_CYCLES
from jitkernels.microkernels.fft.pass_parts import BY_COLUMNS, BY_ROWS
from jitkernels.microkernels.fft.plan import (
    COLUMNS,
    FIRST_RADICES,
    FIRST_ROOTS,
    LENGTH_WORD,
    ROW_CYCLES,
    ROWS,
    VECTOR_CYCLES,
    padded,
)
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.plan_part import plan_functions_of
from jitkernels.microkernels.fft.real_batch_text import CopyText
from jitkernels.microkernels.fft.row_ranges import RowRange
from jitkernels.microkernels.fft.transform import FftScales, Planes, moves_of, plane_size, running_of, scratch_of
from jitkernels.microkernels.heap_scratch import is_null

ONE_BY_ONE, BESIDE, PACKED = range(3)
"""Each transform alone; the columns of each matrix beside each other; those of several matrices."""


@inlined()
def way_of(words: Any, n: int, columns: int, count: int, lanes: int) -> int:
    """How `count` transforms of matrices with so many columns are fastest, fewer than a vector has lanes."""
    copies = COPY_CYCLES * n
    vector = words[VECTOR_CYCLES]
    alone = words[ROW_CYCLES] + (copies if columns > 1 else 0)
    packed = vector // min(count, lanes) + copies
    if columns > 1 and vector // columns <= min(alone, packed):
        return BESIDE
    return PACKED if packed < alone and count > columns else ONE_BY_ONE


class FftMatrices(NamedTuple):
    """Arrays of matrices of n rows, whose columns are transformed."""

    x: Any
    y: Any
    n: int
    columns: int


def packing_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, matrices, part, scratch, scales)`` that fills vectors with several rows."""
    lanes, tables, copy = limits.lanes, tables_of(dtypes.named(dtype).c), CopyText(dtype, 2).text()
    moves, run, one = moves_of(dtype, lanes), running_of(dtype, lanes, beside=True), np.dtype(dtype).type(1)

    @noinline()
    def pack(words: Any, matrices: FftMatrices, part: RowRange, scratch: Any, scales: FftScales) -> None:
        x, y, n, columns = matrices.x, matrices.y, matrices.n, matrices.columns
        planes = Planes(scratch, plane_size(n * lanes, lanes))
        imaginary, buffer = offset(scratch, planes.size), offset(scratch, 4 * planes.size)
        for first in range(part.begin * columns, part.end * columns, lanes):
            live = min(lanes, part.end * columns - first)
            for lane in range(live):
                number = first + lane
                at = 2 * (number // columns * n * columns + number % columns)
                copy(offset(x, at), offset(buffer, 2 * lane), n, columns, lanes)
            moves.load_columns(buffer, scratch, imaginary, 2 * lanes, n, live, one, scales.sign)
            result = run(offset(words, FIRST_RADICES), n, offset(tables(words), words[FIRST_ROOTS]), planes, scratch)
            moves.store_columns(buffer, result, offset(result, planes.size), 2 * lanes, n, live, scales.re, scales.im)
            for lane in range(live):
                number = first + lane
                at = 2 * (number // columns * n * columns + number % columns)
                copy(offset(buffer, 2 * lane), offset(y, at), n, lanes, columns)

    return pack


def scratch_of_batches(limits: FftLimits) -> Any:
    """Return the function ``(n, columns)`` that gives the elements that transforms of matrices need as scratch."""
    scratch, lanes, one_step = scratch_of(limits), limits.lanes, limits.one_step

    @inlined()
    def needed(n: int, columns: int) -> Any:
        if columns >= lanes or n > one_step:
            return scratch(n, columns > 1)
        return max(scratch(n, False) + padded(2 * n), 4 * plane_size(n * lanes, lanes) + padded(2 * n * lanes))

    return needed


def missing_of_batches(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(rows, n, columns)`` that requests the passes of transforms that are not there."""
    missing, lanes, one_step = plan_functions_of(dtype, limits).missing, limits.lanes, limits.one_step

    def check(rows: int, n: int, columns: int) -> Any:
        if n == 0 or columns == 0:
            return 0
        plans = BY_COLUMNS if columns > 1 else BY_ROWS
        if columns < lanes and n <= one_step and rows * columns > 1:
            plans = BY_ROWS | BY_COLUMNS
        return missing(n, plans)

    return check


def batches_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(matrices, part, scratch, scales)`` that transforms the columns of matrices.

    It returns 0 where there is no memory for a plan.
    """
    lanes, one_step = limits.lanes, limits.one_step
    rows, pack = rows_of(dtype, limits), packing_of(dtype, limits)
    by_radices, one_by_one = columns_of(dtype, limits)

    @noinline()
    def transform(matrices: FftMatrices, part: RowRange, scratch: Any, scales: FftScales) -> int:
        x, y, n, columns = matrices.x, matrices.y, matrices.n, matrices.columns
        is_short = columns < lanes and n <= one_step
        words = rows.take(n, COLUMNS if columns > 1 and not is_short else ROWS, scratch)
        if is_null(words):
            return 0
        way = BESIDE if columns > 1 else ONE_BY_ONE
        if is_short:
            way = way_of(words, n, columns, (part.end - part.begin) * columns, lanes)
            if way != ONE_BY_ONE:
                rows.keep(words)
                words = rows.take(n, COLUMNS, scratch)
                if is_null(words):
                    return 0
        if way == PACKED:
            pack(words, matrices, part, scratch, scales)
        else:
            for row in range(part.begin, part.end):
                at = 2 * row * n * columns
                if columns == 1:
                    rows.transform(words, n, offset(x, at), offset(y, at), scratch, scales)
                elif way == BESIDE and words[LENGTH_WORD] == n:
                    by_radices(words, n, columns, offset(x, at), offset(y, at), scratch, scales)
                else:
                    one_by_one(words, n, columns, offset(x, at), offset(y, at), scratch, scales)
        rows.keep(words)
        return 1

    return transform
