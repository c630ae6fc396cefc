"""Transforms of several short rows of real numbers: one by one, or beside each other, as of complex ones."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.bluestein import rows_of
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.pass_costs import COPY_CYCLES
from jitkernels.microkernels.fft.pass_parts import BY_COLUMNS, BY_PAIRS, BY_ROWS
from jitkernels.microkernels.fft.plan import (
    COLUMNS,
    FIRST_RADICES,
    FIRST_ROOTS,
    HALVES_TABLE,
    LENGTH_WORD,
    PAIRS,
    ROW_CYCLES,
    VECTOR_CYCLES,
    padded,
)
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.plan_part import plan_functions_of
from jitkernels.microkernels.fft.real_batch_text import CopyText, RealBatchText
from jitkernels.microkernels.fft.real_rows import complex_length, forward_of, inverse_of, kind_of_real, scratch_of_real
from jitkernels.microkernels.fft.row_ranges import RowRange
from jitkernels.microkernels.fft.transform import Moves, Planes, moves_of, plane_size, running_of
from jitkernels.microkernels.heap_scratch import is_null


class RealPlans(NamedTuple):
    """The plan of columns, and the one of rows with the roots between halves, where the length is even."""

    columns: Any
    halves: Any


class BatchMoves(NamedTuple):
    """The functions of a dtype that batches of both directions use."""

    moves: Moves
    copy: Any
    copy_reals: Any
    split: Any
    run: Any


def batch_moves_of(dtype: str, limits: FftLimits) -> BatchMoves:
    """Return these functions; `run` transforms the first planes and returns those of the result."""
    lanes, tables = limits.lanes, tables_of(dtypes.named(dtype).c)
    beside, halves = running_of(dtype, lanes, beside=True), RealBatchText(dtype, lanes).halves()

    @inlined()
    def run(words: Any, planes: Planes) -> Any:
        roots = offset(tables(words), words[FIRST_ROOTS])
        return beside(offset(words, FIRST_RADICES), words[LENGTH_WORD], roots, planes, planes.base)

    @inlined()
    def split(plans: RealPlans, x: Any, y: Any, size: int, m: int) -> None:
        roots = offset(tables(plans.halves), plans.halves[HALVES_TABLE])
        halves(x, offset(x, size), y, offset(y, size), roots, m)

    copy, copy_reals = CopyText(dtype, 2).text(), CopyText(dtype, 1).text()
    return BatchMoves(moves_of(dtype, lanes), copy, copy_reals, split, run)


def forward_vector_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(plans, n, rows, x, y, planes, scale)`` of as many rows as a vector has lanes, or fewer."""
    number, lanes = np.dtype(dtype).type, limits.lanes
    moves, copy, copy_reals, split, run = batch_moves_of(dtype, limits)
    ends, one, zero = RealBatchText(dtype, lanes).ends(is_forward=True), number(1), number(0)

    @noinline()
    def forward(plans: RealPlans, n: int, rows: RowRange, x: Any, y: Any, planes: Planes, scale: Any) -> None:
        words, m, bins, size, re = plans.columns, n // 2, n // 2 + 1, planes.size, planes.base
        im, buffer, count = offset(re, size), offset(re, 4 * size), rows.end - rows.begin
        if n % 2 == 0:
            for lane in range(count):
                copy(offset(x, (rows.begin + lane) * n), offset(buffer, 2 * lane), m, 1, lanes)
            moves.load_columns(buffer, re, im, 2 * lanes, m, lanes, one, one)
        else:
            for k in range(n * lanes):
                im[k] = zero
            for lane in range(count):
                copy_reals(offset(x, (rows.begin + lane) * n), offset(re, lane), n, 1, lanes)
        z, factor = run(words, planes), scale
        if n % 2 == 0:
            other = offset(re, 2 * size * (1 - words[FIRST_RADICES] % 2))
            ends(z, offset(z, size), other, offset(other, size), m)
            split(plans, z, other, size, m)
            z, factor = other, number(0.5) * scale
        moves.store_columns(buffer, z, offset(z, size), 2 * lanes, bins, lanes, factor, factor)
        for lane in range(count):
            copy(offset(buffer, 2 * lane), offset(y, (rows.begin + lane) * 2 * bins), bins, lanes, 1)

    return forward


def inverse_vector_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(plans, n, rows, x, y, planes, scale)`` of as many rows as a vector has lanes, or fewer."""
    number, lanes = np.dtype(dtype).type, limits.lanes
    moves, copy, copy_reals, split, run = batch_moves_of(dtype, limits)
    ends, conjugate = RealBatchText(dtype, lanes).ends(is_forward=False), RealBatchText(dtype, lanes).conjugates()
    one = number(1)

    @noinline()
    def inverse(plans: RealPlans, n: int, rows: RowRange, x: Any, y: Any, planes: Planes, scale: Any) -> None:
        words, m, bins, size, re = plans.columns, n // 2, n // 2 + 1, planes.size, planes.base
        im, buffer, count = offset(re, size), offset(re, 4 * size), rows.end - rows.begin
        at = offset(re, 2 * size if n % 2 == 0 else 0)
        for lane in range(count):
            copy(offset(x, (rows.begin + lane) * 2 * bins), offset(buffer, 2 * lane), bins, 1, lanes)
        moves.load_columns(buffer, at, offset(at, size), 2 * lanes, bins, lanes, scale, -scale)
        if n % 2 == 0:
            ends(at, offset(at, size), re, im, m)
            split(plans, at, re, size, m)
        else:
            conjugate(re, im, n)
        z = run(words, planes)
        if n % 2 == 0:
            moves.store_columns(buffer, z, offset(z, size), 2 * lanes, m, lanes, one, -one)
        for lane in range(count):
            to = offset(y, (rows.begin + lane) * n)
            if n % 2 == 0:
                copy(offset(buffer, 2 * lane), to, m, lanes, 1)
            else:
                copy_reals(offset(z, lane), to, n, lanes, 1)

    return inverse


def packing_of(dtype: str, limits: FftLimits, *, is_forward: bool) -> Any:
    """Return the function ``(plans, n, part, x, y, scratch, scale)`` that fills vectors with several rows."""
    lanes, of_vector = limits.lanes, (forward_vector_of if is_forward else inverse_vector_of)(dtype, limits)

    @noinline()
    def pack(plans: RealPlans, n: int, part: RowRange, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        planes = Planes(scratch, plane_size((plans.columns[LENGTH_WORD] + 1) * lanes, lanes))
        for first in range(part.begin, part.end, lanes):
            of_vector(plans, n, RowRange(first, min(first + lanes, part.end)), x, y, planes, scale)

    return pack


def scratch_of_real_batches(limits: FftLimits) -> Any:
    """Return the function of n that gives the elements that transforms of real rows need as scratch."""
    alone, lanes, one_step = scratch_of_real(limits), limits.lanes, limits.one_step

    @inlined()
    def needed(n: int) -> Any:
        if n > one_step:
            return alone(n)
        plane = plane_size((complex_length(n) + 1) * lanes, lanes)
        return max(alone(n), 4 * plane + padded(2 * (n // 2 + 1) * lanes))

    return needed


def missing_of_real_batches(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(rows, n)`` that requests the passes of transforms that are not there."""
    missing, one_step = plan_functions_of(dtype, limits).missing, limits.one_step

    def check(rows: int, n: int) -> Any:
        if n == 0:
            return 0
        plans = BY_PAIRS if kind_of_real(n) == PAIRS else BY_ROWS
        if rows > 1 and n <= one_step and plans == BY_ROWS:
            plans = BY_ROWS | BY_COLUMNS
        return missing(complex_length(n), plans)

    return check


def real_batches_of(dtype: str, limits: FftLimits, *, is_forward: bool) -> Any:
    """Return the function ``(n, part, x, y, scratch, scale)`` that transforms rows.

    It returns 0 where there is no memory for a plan.
    """
    lanes, one_step = limits.lanes, limits.one_step
    rows, pack = rows_of(dtype, limits), packing_of(dtype, limits, is_forward=is_forward)
    transform = (forward_of if is_forward else inverse_of)(dtype, limits, rows)

    @noinline()
    def run(n: int, part: RowRange, x: Any, y: Any, scratch: Any, scale: Any) -> int:
        length, kind = complex_length(n), kind_of_real(n)
        words, count = rows.take(length, kind, scratch), part.end - part.begin
        if is_null(words):
            return 0
        packs = False
        if count > 1 and n <= one_step and kind != PAIRS:
            packs = words[VECTOR_CYCLES] // min(count, lanes) + COPY_CYCLES * length < words[ROW_CYCLES]
        if packs:
            columns = rows.take(length, COLUMNS, scratch)
            if is_null(columns):
                rows.keep(words)
                return 0
            pack(RealPlans(columns, words), n, part, x, y, scratch, scale)
            rows.keep(columns)
        else:
            x_row = n if is_forward else 2 * (n // 2 + 1)
            y_row = 2 * (n // 2 + 1) if is_forward else n
            for row in range(part.begin, part.end):
                transform(words, n, offset(x, row * x_row), offset(y, row * y_row), scratch, scale)
        rows.keep(words)
        return 1

    return run
