"""A whole transform of complex numbers in rows or columns, from the passes.

Numbers are taken apart into planes when they are read, and interleaved when they are written. There the inverse
transform conjugates them, which leaves one direction for all that is between.
"""

import functools
from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.any_radix import matrix_size
from jitkernels.microkernels.fft.factors import FftLimits, smooth_length, steps_of
from jitkernels.microkernels.fft.pass_costs import transposes
from jitkernels.microkernels.fft.pass_parts import PASS_ALONG, PASS_BESIDE, PASS_LAST, passing_of
from jitkernels.microkernels.fft.plan import (
    ACROSS_WORD,
    BLOCK_ROOTS,
    DOWN_WORD,
    FIRST_RADICES,
    FIRST_ROOTS,
    LENGTH_WORD,
    SECOND_RADICES,
    SECOND_ROOTS,
    TILE_ROOTS,
    padded,
)  # fmt: skip
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.tiles import TileText


class FftScales(NamedTuple):
    """What both parts are multiplied by: the imaginary parts that are read, and both parts that are written."""

    sign: Any
    re: Any
    im: Any


class Planes(NamedTuple):
    """Two pairs of planes, which passes read and write in turn, and the number of elements of a plane."""

    base: Any
    size: int


@functools.cache  # one function serves steps, columns and packed rows
def running_of(dtype: str, lanes: int, *, beside: bool) -> Any:
    """Return the function ``(radices, n, table, planes, source)`` that runs all passes.

    The first pass reads `source`, two planes as far from each other as those of `planes`. Returns the planes of the
    result: `source` itself where there are no passes.
    """
    first = passing_of(dtype, lanes, PASS_BESIDE if beside else PASS_ALONG)
    last = first if beside else passing_of(dtype, lanes, PASS_LAST)

    @noinline()
    def run(radices: Any, n: int, table: Any, planes: Planes, source: Any) -> Any:
        at, roots, ido, l1, turn = source, table, n, 1, 1
        for t in range(radices[0]):
            radix = radices[1 + t]
            ido = ido // radix
            target = offset(planes.base, 2 * planes.size * turn)
            if not beside and transposes(radix, ido, l1):
                last(radix, at, target, planes.size, roots, ido, l1)
            else:
                first(radix, at, target, planes.size, roots, ido, l1)
            roots = offset(roots, padded(2 * (radix - 1) * ido) + padded(matrix_size(radix)))
            l1 *= radix
            at = target
            turn = 1 - turn
        return at

    return run


class Moves(NamedTuple):
    """The functions of a dtype that read and write columns and rows of complex numbers."""

    load_columns: Any
    store_columns: Any
    load_row: Any
    store_row: Any


@functools.cache
def moves_of(dtype: str, lanes: int) -> Moves:
    """Return these functions for vectors of so many lanes."""
    number = np.dtype(dtype).type
    load = TileText(dtype, lanes).columns(stores=False)
    store = TileText(dtype, lanes).columns(stores=True)
    one = number(1)

    @inlined()
    def load_row(x: Any, n: int, planes: Any, size: int, scales: FftScales) -> None:
        whole = n // lanes
        if whole > 0:
            load(x, planes, offset(planes, size), 2 * lanes, whole, lanes, one, scales.sign)
        if n % lanes > 0:
            at = whole * lanes
            load(offset(x, 2 * at), offset(planes, at), offset(planes, size + at), 0, 1, n % lanes, one, scales.sign)

    @inlined()
    def store_row(y: Any, n: int, planes: Any, size: int, scales: FftScales) -> None:
        whole = n // lanes
        if whole > 0:
            store(y, planes, offset(planes, size), 2 * lanes, whole, lanes, scales.re, scales.im)
        if n % lanes > 0:
            at, rest = whole * lanes, n % lanes
            store(offset(y, 2 * at), offset(planes, at), offset(planes, size + at), 0, 1, rest, scales.re, scales.im)

    return Moves(load, store, load_row, store_row)


@inlined()
def plane_size(n: int, lanes: int) -> int:
    """Elements of a plane of n numbers, in whole vectors. An odd number of cache lines keeps planes out of one set."""
    return padded(n + lanes) + 16


@inlined()
def block_size(down: int, lanes: int) -> int:
    """Elements of a plane of a vector's columns, in whole squares."""
    return plane_size((down + lanes - 1) // lanes * lanes * lanes, lanes)


@functools.cache
def smooth_scratch_of(limits: FftLimits) -> Any:
    """Return the function that gives the scratch elements of a transform whose length has radices."""
    lanes, one_step = limits.lanes, limits.one_step

    @noinline()
    def scratch(length: int) -> Any:
        across = steps_of(length, one_step)
        if across == 0:
            return 4 * plane_size(length, lanes)
        down = length // across
        size = block_size(down, lanes)
        return 2 * size * ((across + lanes - 1) // lanes) + 4 * size

    return scratch


def scratch_of(limits: FftLimits) -> Any:
    """Return the function ``(n, beside)`` that gives the elements that a transform needs as scratch."""
    lanes, of_smooth = limits.lanes, smooth_scratch_of(limits)

    @inlined()
    def scratch(n: int, beside: bool) -> Any:
        length = smooth_length(n, beside)
        if beside and length == n:
            return 4 * plane_size(n * lanes, lanes)
        if length == n:
            return of_smooth(n)
        return 2 * padded(2 * length) + padded(2 * n) + of_smooth(length)

    return scratch


def one_step_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, x, y, scratch, scales)`` that transforms a row in one step."""
    lanes, tables = limits.lanes, tables_of(dtypes.named(dtype).c)
    moves, along = moves_of(dtype, lanes), running_of(dtype, lanes, beside=False)
    load_row, store_row = moves.load_row, moves.store_row

    @noinline()
    def in_one_step(words: Any, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        n = words[LENGTH_WORD]
        planes = Planes(scratch, plane_size(n, lanes))
        load_row(x, n, scratch, planes.size, scales)
        result = along(offset(words, FIRST_RADICES), n, offset(tables(words), words[FIRST_ROOTS]), planes, scratch)
        store_row(y, n, result, planes.size, scales)

    return in_one_step


@functools.cache
def block_turning_of(dtype: str, lanes: int) -> Any:
    """Return the function ``(words, block, source, rows, size, squares)`` between two steps, for a block of columns."""
    tables = tables_of(dtypes.named(dtype).c)
    tile, zero = TileText(dtype, lanes).rotated_tile(), np.dtype(dtype).type(0)

    @noinline()
    def turn_block(words: Any, block: int, source: Any, rows: int, size: int, squares: Any) -> None:
        """Multiply the first rows of a block of columns by roots, and transpose them into the rows of the squares."""
        rows_of_blocks, of_table = (rows + lanes - 1) // lanes, (words[ACROSS_WORD] + lanes - 1) // lanes
        roots = offset(tables(words), words[TILE_ROOTS])
        turns = offset(tables(words), words[BLOCK_ROOTS] + block * 2 * lanes * of_table)
        for i in range(rows * lanes, rows_of_blocks * lanes * lanes):
            source[i] = zero
            source[size + i] = zero
        for r in range(rows_of_blocks):
            at, to = r * lanes * lanes, 2 * size * r + block * lanes * lanes
            tile(
                offset(source, at), offset(source, size + at), offset(roots, 2 * at), offset(turns, 2 * lanes * r),
                offset(squares, to), offset(squares, size + to),
            )  # fmt: skip

    return turn_block


def two_steps_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, x, y, scratch, scales)`` that transforms a row in two steps."""
    lanes, tables, one = limits.lanes, tables_of(dtypes.named(dtype).c), np.dtype(dtype).type(1)
    moves, beside = moves_of(dtype, lanes), running_of(dtype, lanes, beside=True)
    load_columns, store_columns = moves.load_columns, moves.store_columns
    turn_block = block_turning_of(dtype, lanes)

    @noinline()
    def in_two_steps(words: Any, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        across, down = words[ACROSS_WORD], words[DOWN_WORD]
        size, rows_of_blocks = block_size(down, lanes), (across + lanes - 1) // lanes
        planes = Planes(scratch, size)
        squares = offset(scratch, 4 * size)
        for block in range((down + lanes - 1) // lanes):
            live = min(lanes, down - block * lanes)
            at = offset(x, 2 * lanes * block)
            load_columns(at, scratch, offset(scratch, size), 2 * down, across, live, one, scales.sign)
            result = beside(
                offset(words, FIRST_RADICES), across, offset(tables(words), words[FIRST_ROOTS]), planes, scratch
            )
            turn_block(words, block, result, across, size, squares)
        for block in range(rows_of_blocks):
            source = offset(squares, 2 * size * block)
            live = min(lanes, across - block * lanes)
            table = offset(tables(words), words[SECOND_ROOTS])
            result = beside(offset(words, SECOND_RADICES), down, table, planes, source)
            at = offset(y, 2 * lanes * block)
            store_columns(at, result, offset(result, size), 2 * across, down, live, scales.re, scales.im)

    return in_two_steps


def smooth_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, x, y, scratch, scales)`` that transforms a row whose length has radices."""
    in_one_step, in_two_steps = one_step_of(dtype, limits), two_steps_of(dtype, limits)

    @inlined()
    def smooth(words: Any, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        if words[ACROSS_WORD] == 0:
            in_one_step(words, x, y, scratch, scales)
        else:
            in_two_steps(words, x, y, scratch, scales)

    return smooth
