"""Plans: the radices and tables of a length, which a kernel computes once and keeps."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.factors import Limits, last_radix, put_radices, smooth_length, steps_of
from jitkernels.microkernels.fft.plan_cache import drop_plan, no_words, put_plan, set_tables, tables_of, take_plan
from jitkernels.microkernels.fft.roots import root_of_unity
from jitkernels.microkernels.heap_scratch import heap_allocator, is_null

KEY, LENGTH, ACROSS, DOWN = 0, 2, 3, 4
"""Words of a plan: its key; the length of the transform by radices; the lengths of two steps, of which the first is 0
where there is one."""
FIRST, SECOND, SQUARE, TURNS, CHIRP, IMAGE, HALVES, TOTAL = 5, 6, 7, 8, 9, 10, 11, 12
"""Offsets of tables, in elements: roots of the passes of either step, those of the columns of a square, those of whole
blocks; the chirp and its transform; roots between halves of a real transform. And the size of all."""
RADICES, MORE_RADICES = 16, 56
"""The number of radices and the radices, of the first step or the only one, and of the second."""
ALIGNED = 16


@inlined()
def padded(n: int) -> int:
    """`n` numbers and what alignment takes."""
    return (n + ALIGNED - 1) // ALIGNED * ALIGNED


@inlined()
def pass_roots(radices: Any, n: int) -> int:
    """The elements of the roots of all passes."""
    total, ido = 0, n
    for t in range(radices[0]):
        radix = radices[1 + t]
        ido = ido // radix
        total += padded(2 * (radix - 1) * ido)
    return total


@inlined()
def key_of(n: int, beside: bool, real: bool) -> int:
    """The key of a plan, which is never 0."""
    return 4 * n + (2 if beside else 0) + (1 if real else 0)


@inlined()
def no_plan(words: Any) -> Any:
    """Drop a plan without tables; return null."""
    drop_plan(words)
    return no_words()


@inlined()
def keep_plan(words: Any, limit: int) -> None:
    """Put a plan back, unless its tables have more elements than the limit."""
    if words[TOTAL] > limit:
        drop_plan(words)
    else:
        put_plan(words)


def planning_of(dtype: str, limits: Limits) -> Any:
    """Return the function ``(n, beside, real)`` that takes out a plan, or makes one; null where there is no memory.

    beside: passes work on transforms beside each other, so that there is one step, and no last pass. real: besides, the
    roots that a transform of ``2 * n`` real numbers takes. The key of a new plan is 0; it has all tables but the
    transform of the chirp.
    """
    number, size, lanes = np.dtype(dtype).type, dtypes.named(dtype).size, limits.lanes
    one_step = limits.one_step
    memory, tables = heap_allocator(dtypes.named(dtype).c), tables_of(dtypes.named(dtype).c)

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
    def lay_out(words: Any, n: int, beside: bool, real: bool) -> None:
        length = smooth_length(n)
        across = 0 if beside else steps_of(length, one_step)
        words[LENGTH], words[ACROSS] = length, across
        total = 0
        if across == 0:
            put_radices(offset(words, RADICES), length, 1 if beside or length == 1 else last_radix(length, lanes))
            words[FIRST] = total
            total += pass_roots(offset(words, RADICES), length)
        else:
            down = length // across
            rows = (across + lanes - 1) // lanes * lanes
            words[DOWN] = down
            put_radices(offset(words, RADICES), across, 1)
            put_radices(offset(words, MORE_RADICES), down, 1)
            words[FIRST] = total
            total += pass_roots(offset(words, RADICES), across)
            words[SECOND] = total
            total += pass_roots(offset(words, MORE_RADICES), down)
            words[SQUARE] = total
            total += 2 * rows * lanes
            words[TURNS] = total
            total += 2 * rows * ((down + lanes - 1) // lanes)
        words[CHIRP] = total
        words[IMAGE] = total
        if length != n:
            words[IMAGE] = total + padded(2 * n)
            total += padded(2 * n) + padded(2 * length)
        words[HALVES] = total
        if real:
            total += padded(n + 2)
        words[TOTAL] = total

    @inlined()
    def fill(words: Any, n: int, table: Any, real: bool) -> None:
        length, across, down = words[LENGTH], words[ACROSS], words[DOWN]
        fill_passes(offset(words, RADICES), length if across == 0 else across, offset(table, words[FIRST]))
        if across > 0:
            fill_passes(offset(words, MORE_RADICES), down, offset(table, words[SECOND]))
            fill_square(length, across, offset(table, words[SQUARE]))
            fill_turns(length, across, down, offset(table, words[TURNS]))
        if length != n:
            fill_chirp(n, offset(table, words[CHIRP]))
        if real:
            fill_halves(n, offset(table, words[HALVES]))

    @noinline()
    def take(n: int, beside: bool, real: bool) -> Any:
        words = take_plan(key_of(n, beside, real))
        if is_null(words) == 0 and words[KEY] == 0:
            lay_out(words, n, beside, real)
            block = memory(words[TOTAL] * size + 64)
            set_tables(words, block)
            if is_null(block):
                words = no_plan(words)
            else:
                fill(words, n, tables(words), real)
        return words

    return take
