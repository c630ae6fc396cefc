"""Plans: the radices and tables of a length, which a kernel computes once and keeps."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.any_radix import matrix_filling_of, matrix_size
from jitkernels.microkernels.fft.factors import FftLimits, last_radix, put_radices, smooth_length, steps_of
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

KEY_WORD, LENGTH_WORD, ACROSS_WORD, DOWN_WORD = 0, 2, 3, 4
"""Words of a plan: its key; the length of the transform by radices; the lengths of two steps, of which the first is 0
where there is one."""
FIRST_ROOTS, SECOND_ROOTS, TILE_ROOTS, BLOCK_ROOTS = 5, 6, 7, 8
CHIRP_TABLE, IMAGE_TABLE, HALVES_TABLE, TABLES_SIZE = 9, 10, 11, 12
"""Offsets of tables, in elements: roots of the passes of either step, those of the columns of a square, those of whole
blocks; the chirp and its transform; roots between halves of a real transform. And the size of all."""
FIRST_RADICES, SECOND_RADICES = 16, 56
"""The number of radices and the radices, of the first step or the only one, and of the second."""
TABLE_ALIGNMENT = 16
any_tables = tables_of("void")


@inlined()
def padded(n: int) -> int:
    """`n` numbers and what alignment takes."""
    return (n + TABLE_ALIGNMENT - 1) // TABLE_ALIGNMENT * TABLE_ALIGNMENT


@inlined()
def pass_roots(radices: Any, n: int) -> int:
    """The elements of the roots of all passes, and of the matrices of those of any radix."""
    total, ido = 0, n
    for t in range(radices[0]):
        radix = radices[1 + t]
        ido = ido // radix
        total += padded(2 * (radix - 1) * ido) + padded(matrix_size(radix))
    return total


@inlined()
def key_of(n: int, beside: bool, real: bool) -> int:
    """The key of a plan, which is never 0."""
    return 4 * n + (2 if beside else 0) + (1 if real else 0)


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
    """Return the function ``(words, n, table, real)`` that fills all tables but the transform of the chirp."""
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
    def fill(words: Any, n: int, table: Any, real: bool) -> None:
        length, across, down = words[LENGTH_WORD], words[ACROSS_WORD], words[DOWN_WORD]
        fill_passes(offset(words, FIRST_RADICES), length if across == 0 else across, offset(table, words[FIRST_ROOTS]))
        if across > 0:
            fill_passes(offset(words, SECOND_RADICES), down, offset(table, words[SECOND_ROOTS]))
            fill_square(length, across, offset(table, words[TILE_ROOTS]))
            fill_turns(length, across, down, offset(table, words[BLOCK_ROOTS]))
        if length != n:
            fill_chirp(n, offset(table, words[CHIRP_TABLE]))
        if real:
            fill_halves(n, offset(table, words[HALVES_TABLE]))

    return fill


def layout_of(limits: FftLimits) -> Any:
    """Return the function ``(words, n, beside, real)`` that writes the lengths, radices and offsets of a plan."""
    lanes, one_step = limits.lanes, limits.one_step

    @inlined()
    def lay_out(words: Any, n: int, beside: bool, real: bool) -> None:
        length = smooth_length(n)
        is_one = beside and length == n  # a convolution is of rows
        across = 0 if is_one else steps_of(length, one_step)
        words[LENGTH_WORD], words[ACROSS_WORD] = length, across
        total = 0
        if across == 0:
            put_radices(offset(words, FIRST_RADICES), length, 1 if is_one or length == 1 else last_radix(length, lanes))
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
        if real:
            total += padded(n + 2)
        words[TABLES_SIZE] = total

    return lay_out


def planning_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(n, beside, real)`` that takes out a plan, or makes one; null where there is no memory.

    beside: passes work on transforms beside each other, so that there is one step, and no last pass. real: besides, the
    roots that a transform of ``2 * n`` real numbers takes. The key of a new plan is 0; it has all tables but the
    transform of the chirp.
    """
    size, fill, lay_out = dtypes.named(dtype).size, filling_of(dtype, limits.lanes), layout_of(limits)
    memory, tables = heap_allocator(dtypes.named(dtype).c), tables_of(dtypes.named(dtype).c)

    @noinline()
    def take(n: int, beside: bool, real: bool) -> Any:
        words = take_plan(key_of(n, beside, real))
        if is_null(words) == 0 and words[KEY_WORD] != 0:
            count_kept(-words[TABLES_SIZE])
        if is_null(words) == 0 and words[KEY_WORD] != key_of(n, beside, real):
            words[KEY_WORD] = 0
            heap_free(tables(words))
            lay_out(words, n, beside, real)
            block = memory(words[TABLES_SIZE] * size + 64)
            set_tables(words, block)
            if is_null(block):
                words = no_plan(words)
            else:
                fill(words, n, tables(words), real)
        return words

    return take
