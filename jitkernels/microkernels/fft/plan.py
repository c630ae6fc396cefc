"""Plans: the radices and tables of a length, which a kernel computes once and keeps.

The kind of a plan is what its passes work on: rows of complex numbers; such rows and the roots between the halves of a
real transform of twice the length; columns, in one step without a last pass; or pairs of real columns, in two steps.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.any_radix import matrix_filling_of, matrix_size
from jitkernels.microkernels.fft.factors import FftLimits, has_radices, last_radix, put_radices, smooth_length, steps_of
from jitkernels.microkernels.fft.pass_costs import CONVOLUTION_CYCLES, UNLIMITED_CYCLES, row_cycles, vector_cycles
from jitkernels.microkernels.fft.plan_cache import (
    count_kept,
    free_words,
    no_words,
    put_plan,
    set_tables,
    tables_of,
    take_plan,
)
from jitkernels.microkernels.fft.roots import root_of_unity
from jitkernels.microkernels.heap_scratch import heap_allocator, heap_free, is_null

ROWS, HALVES, COLUMNS, PAIRS = range(4)
"""The kinds of plans."""
KEY_WORD, LENGTH_WORD, ACROSS_WORD, DOWN_WORD = 0, 2, 3, 4
"""Words of a plan: its key; the length of the transform by radices; the lengths of two steps, of which the first is 0
where there is one."""
FIRST_ROOTS, SECOND_ROOTS, TILE_ROOTS, BLOCK_ROOTS = 5, 6, 7, 8
CHIRP_TABLE, IMAGE_TABLE, HALVES_TABLE, TABLES_SIZE = 9, 10, 11, 12
"""Offsets of tables, in elements: roots of the passes of either step, those of the columns of a square, those of whole
blocks; the chirp and its transform; roots between halves of a real transform. And the size of all."""
ROW_CYCLES, VECTOR_CYCLES = 13, 14
"""Estimates: of a transform of a row, and of as many beside each other as a vector has lanes."""
FIRST_RADICES, SECOND_RADICES = 16, 56
"""The number of radices and the radices, of the first step or the only one, and of the second."""
TABLE_ALIGNMENT = 16
any_tables = tables_of("void")


@inlined()
def padded(n: int) -> int:
    """`n` numbers and what alignment takes."""
    return (n + TABLE_ALIGNMENT - 1) // TABLE_ALIGNMENT * TABLE_ALIGNMENT


@noinline()
def pass_roots(radices: Any, n: int) -> int:
    """The elements of the roots of all passes, and of the matrices of those of any radix."""
    total, ido = 0, n
    for t in range(radices[0]):
        radix = radices[1 + t]
        ido = ido // radix
        total += padded(2 * (radix - 1) * ido) + padded(matrix_size(radix))
    return total


@inlined()
def key_of(n: int, kind: int) -> int:
    """The key of a plan, which is never 0."""
    return 4 * n + kind


@noinline()
def drop_plan(words: Any) -> None:
    """Free a plan and its tables."""
    heap_free(any_tables(words))
    free_words(words)


@inlined()
def no_plan(words: Any) -> Any:
    """Drop a plan without tables; return null."""
    drop_plan(words)
    return no_words()


@inlined()
def keep_plan(words: Any, limit: int) -> None:
    """Put a plan back, unless the tables of all that lie there would have more elements than the limit."""
    size = words[TABLES_SIZE]
    if count_kept(size) > limit:
        count_kept(-size)
        drop_plan(words)
    else:
        replaced = put_plan(words)
        if is_null(replaced) == 0:
            count_kept(-replaced[TABLES_SIZE])
            drop_plan(replaced)


def roots_filling_of(dtype: str, lanes: int) -> Any:
    """Return the functions that fill the roots of passes, ``(radices, n, table)``, and those of two steps.

    The latter are ``(n, across, table)``, of the numbers of a block beside each other, and
    ``(n, across, down, table)``, of the first number of each block.
    """
    number, fill_matrix = np.dtype(dtype).type, matrix_filling_of(dtype)

    @noinline()
    def fill_passes(radices: Any, n: int, table: Any) -> None:
        at, ido = table, n
        for t in range(radices[0]):
            radix = radices[1 + t]
            ido = ido // radix
            imaginary = offset(at, (radix - 1) * ido)
            for k in range(1, radix):
                for i in range(ido):
                    re, im = root_of_unity(i * k, ido * radix)
                    at[(k - 1) * ido + i] = number(re)
                    imaginary[(k - 1) * ido + i] = number(-im)
            at = offset(at, padded(2 * (radix - 1) * ido))
            if matrix_size(radix) > 0:
                fill_matrix(radix, at)
                at = offset(at, padded(matrix_size(radix)))

    @noinline()
    def fill_square(n: int, across: int, table: Any) -> None:
        """Roots of the numbers of a block beside each other: vectors of real and imaginary parts in turn."""
        for k in range((across + lanes - 1) // lanes * lanes):
            for lane in range(lanes):
                re, im = root_of_unity(k * lane % n, n)
                table[2 * k * lanes + lane] = number(re)
                table[(2 * k + 1) * lanes + lane] = number(-im)

    @noinline()
    def fill_turns(n: int, across: int, down: int, table: Any) -> None:
        """Roots of the first number of each block: rows of a block of columns."""
        rows = (across + lanes - 1) // lanes * lanes
        for block in range((down + lanes - 1) // lanes):
            for k in range(rows):
                re, im = root_of_unity(k * block * lanes % n, n)
                at = block * 2 * rows + k // lanes * 2 * lanes + k % lanes
                table[at] = number(re)
                table[at + lanes] = number(-im)

    return fill_passes, fill_square, fill_turns


def filling_of(dtype: str, lanes: int) -> Any:
    """Return the function ``(words, n, table, kind)`` that fills all tables but the transform of the chirp."""
    number = np.dtype(dtype).type
    fill_passes, fill_square, fill_turns = roots_filling_of(dtype, lanes)

    @noinline()
    def fill_chirp(n: int, table: Any) -> None:
        """``exp(-pi i k**2 / n)``, by the square modulo 2 n."""
        square = 0
        for k in range(n):
            re, im = root_of_unity(square, 2 * n)
            table[2 * k] = number(re)
            table[2 * k + 1] = number(-im)
            square = (square + 2 * k + 1) % (2 * n)

    @noinline()
    def fill_halves(n: int, table: Any) -> None:
        """``-i exp(-pi i k / n)``."""
        for k in range(n // 2 + 1):
            re, im = root_of_unity(k, 2 * n)
            table[2 * k] = number(-im)
            table[2 * k + 1] = number(-re)

    @inlined()
    def fill(words: Any, n: int, table: Any, kind: int) -> None:
        length, across, down = words[LENGTH_WORD], words[ACROSS_WORD], words[DOWN_WORD]
        fill_passes(offset(words, FIRST_RADICES), length if across == 0 else across, offset(table, words[FIRST_ROOTS]))
        if across > 0:
            fill_passes(offset(words, SECOND_RADICES), down, offset(table, words[SECOND_ROOTS]))
            fill_square(length, across, offset(table, words[TILE_ROOTS]))
            fill_turns(length, across, down, offset(table, words[BLOCK_ROOTS]))
        if length != n:
            fill_chirp(n, offset(table, words[CHIRP_TABLE]))
        if kind == HALVES:
            fill_halves(n, offset(table, words[HALVES_TABLE]))

    return fill


def estimating_of(limits: FftLimits) -> Any:
    """Return the function ``(words, n)`` that writes the estimates of a length; it overwrites the second radices."""
    lanes, one_step = limits.lanes, limits.one_step

    @noinline()
    def estimate(words: Any, n: int) -> None:
        words[ROW_CYCLES], words[VECTOR_CYCLES] = 0, UNLIMITED_CYCLES
        radices = offset(words, SECOND_RADICES)
        if n <= one_step:
            length = smooth_length(n, False)
            put_radices(radices, length, last_radix(length, lanes))
            cycles = row_cycles(radices, length, lanes)
            words[ROW_CYCLES] = cycles if length == n else 2 * cycles + CONVOLUTION_CYCLES * length // lanes
            if has_radices(n, True):
                put_radices(radices, n, 1)
                words[VECTOR_CYCLES] = vector_cycles(radices, n)

    return estimate


def layout_of(limits: FftLimits) -> Any:
    """Return the function ``(words, n, kind)`` that writes the lengths, radices and offsets of a plan."""
    lanes, one_step, estimate = limits.lanes, limits.one_step, estimating_of(limits)

    @inlined()
    def lay_out(words: Any, n: int, kind: int) -> None:
        estimate(words, n)
        length = smooth_length(n, kind == COLUMNS)
        is_one = kind == COLUMNS and length == n  # a convolution is of rows
        across = 0 if is_one else steps_of(length, 0 if kind == PAIRS else one_step)
        words[LENGTH_WORD], words[ACROSS_WORD] = length, across
        total = 0
        if across == 0:
            put_radices(offset(words, FIRST_RADICES), length, 1 if is_one else last_radix(length, lanes))
            words[FIRST_ROOTS] = total
            total += pass_roots(offset(words, FIRST_RADICES), length)
        else:
            down = length // across
            rows = (across + lanes - 1) // lanes * lanes
            words[DOWN_WORD] = down
            put_radices(offset(words, FIRST_RADICES), across, 1)
            put_radices(offset(words, SECOND_RADICES), down, 1)
            words[FIRST_ROOTS] = total
            total += pass_roots(offset(words, FIRST_RADICES), across)
            words[SECOND_ROOTS] = total
            total += pass_roots(offset(words, SECOND_RADICES), down)
            words[TILE_ROOTS] = total
            total += 2 * rows * lanes
            words[BLOCK_ROOTS] = total
            total += 2 * rows * ((down + lanes - 1) // lanes)
        words[CHIRP_TABLE] = total
        words[IMAGE_TABLE] = total
        if length != n:
            words[IMAGE_TABLE] = total + padded(2 * n)
            total += padded(2 * n) + padded(2 * length)
        words[HALVES_TABLE] = total
        if kind == HALVES:
            total += padded(n + 2)
        words[TABLES_SIZE] = total

    return lay_out


def planning_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(n, kind)`` that takes out a plan, or makes one; null where there is no memory.

    The key of a new plan is 0; it has all tables but the transform of the chirp.
    """
    size, fill, lay_out = dtypes.named(dtype).size, filling_of(dtype, limits.lanes), layout_of(limits)
    memory, tables = heap_allocator(dtypes.named(dtype).c), tables_of(dtypes.named(dtype).c)

    @noinline()
    def take(n: int, kind: int) -> Any:
        words = take_plan(key_of(n, kind))
        if is_null(words) == 0 and words[KEY_WORD] != 0:
            count_kept(-words[TABLES_SIZE])
        if is_null(words) == 0 and words[KEY_WORD] != key_of(n, kind):
            words[KEY_WORD] = 0
            heap_free(tables(words))
            lay_out(words, n, kind)
            block = memory(words[TABLES_SIZE] * size + 64)
            set_tables(words, block)
            if is_null(block):
                words = no_plan(words)
            else:
                fill(words, n, tables(words), kind)
        return words

    return take
