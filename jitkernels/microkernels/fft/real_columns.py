"""Transforms of an odd number of real numbers, in two steps of half the work of complex ones.

The first step of the forward transform works on real columns: two of them are one of complex numbers. Of its rows,
those after the middle are conjugates of those before it, and so are the results of their transforms: the second step
leaves them out. The inverse goes the other way: transforms of half the rows, then two real columns as one.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.factors import FftLimits, has_radices, steps_of
from jitkernels.microkernels.fft.plan import (
    ACROSS_WORD,
    DOWN_WORD,
    FIRST_RADICES,
    FIRST_ROOTS,
    PAIRS,
    ROWS,
    SECOND_RADICES,
    SECOND_ROOTS,
)
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.real_column_text import RealColumnText
from jitkernels.microkernels.fft.transform import Planes, block_turning_of, moves_of, plane_size, running_of

LEAST_PAIRS = 500
"""The least length that gains by two steps: the numbers of shorter ones fill too few vectors."""
LEAST_STEP = 5


@noinline()
def kind_of_odd(n: int) -> int:
    """The kind of plan of an odd number of real numbers."""
    return PAIRS if n >= LEAST_PAIRS and has_radices(n, False) and steps_of(n, 0) >= LEAST_STEP else ROWS


@inlined()
def pair_plane(across: int, down: int, lanes: int) -> int:
    """Elements of a plane of a vector's columns of either step, or of the halves of two of them in whole squares."""
    return plane_size((max(across, down) + 2 * lanes + 2) * lanes, lanes)


def scratch_of_pairs(limits: FftLimits) -> Any:
    """Return the function of n that gives the elements that such a transform needs as scratch."""
    lanes = limits.lanes

    @inlined()
    def scratch(n: int) -> int:
        across = steps_of(n, 0)
        return pair_plane(across, n // across, lanes) * (4 + 2 * ((across + lanes - 1) // lanes))

    return scratch


def forward_pairs_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, n, x, y, scratch, scale)``: y has ``n // 2 + 1`` complex numbers."""
    number, lanes, tables = np.dtype(dtype).type, limits.lanes, tables_of(dtypes.named(dtype).c)
    load, store = RealColumnText(dtype, lanes).reals(stores=False), moves_of(dtype, lanes).store_columns
    separate, store_mirrored = (
        RealColumnText(dtype, lanes).separated(),
        RealColumnText(dtype, lanes).mirrored(stores=True),
    )
    beside, turn_block = running_of(dtype, lanes, beside=True), block_turning_of(dtype, lanes)

    @noinline()
    def forward(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        across, down, half = words[ACROSS_WORD], words[DOWN_WORD], number(0.5) * scale
        size, rows = pair_plane(across, down, lanes), across // 2 + 1
        blocks_of_rows = (rows + lanes - 1) // lanes
        planes, squares, second = Planes(scratch, size), offset(scratch, 4 * size), blocks_of_rows * lanes * lanes
        radices, table = offset(words, FIRST_RADICES), offset(tables(words), words[FIRST_ROOTS])
        for block in range((down + 2 * lanes - 1) // (2 * lanes)):
            live = min(2 * lanes, down - 2 * lanes * block)
            load(offset(x, 2 * lanes * block), scratch, offset(scratch, size), down, across, live, number(1))
            z = beside(radices, across, table, planes, scratch)
            a = offset(scratch, 2 * size * (1 - radices[0] % 2))
            b = offset(a, second)
            separate(z, offset(z, size), a, offset(a, size), b, offset(b, size), across)
            turn_block(words, 2 * block, a, rows, size, squares)
            if live > lanes:
                turn_block(words, 2 * block + 1, b, rows, size, squares)
        middle = down // 2 + 1
        radices, table = offset(words, SECOND_RADICES), offset(tables(words), words[SECOND_ROOTS])
        for block in range(blocks_of_rows):
            begin = block * lanes
            live = min(lanes, rows - begin)
            result = beside(radices, down, table, planes, offset(squares, 2 * size * block))
            store(offset(y, 2 * begin), result, offset(result, size), 2 * across, middle, live, half, half)
            at, back = offset(result, middle * lanes), offset(y, 2 * (n - begin - across * middle))
            first = 1 if block == 0 else 0
            store_mirrored(back, at, offset(at, size), -2 * across, down // 2, first, live, half, -half)
        y[1] = number(0)

    return forward


def inverse_pairs_of(dtype: str, limits: FftLimits) -> Any:
    """Return the function ``(words, n, x, y, scratch, scale)``: x has ``n // 2 + 1`` complex numbers."""
    number, lanes, tables = np.dtype(dtype).type, limits.lanes, tables_of(dtypes.named(dtype).c)
    load, store = moves_of(dtype, lanes).load_columns, RealColumnText(dtype, lanes).reals(stores=True)
    combine, load_mirrored = (
        RealColumnText(dtype, lanes).combined(),
        RealColumnText(dtype, lanes).mirrored(stores=False),
    )
    beside, turn_block = running_of(dtype, lanes, beside=True), block_turning_of(dtype, lanes)

    @noinline()
    def inverse(words: Any, n: int, x: Any, y: Any, scratch: Any, scale: Any) -> None:
        across, down, one = words[ACROSS_WORD], words[DOWN_WORD], number(1)
        size, rows, middle = pair_plane(across, down, lanes), down // 2 + 1, across // 2 + 1
        planes, squares = Planes(scratch, size), offset(scratch, 4 * size)
        radices, table = offset(words, FIRST_RADICES), offset(tables(words), words[FIRST_ROOTS])
        for block in range((rows + lanes - 1) // lanes):
            begin = block * lanes
            live = min(lanes, rows - begin)
            load(offset(x, 2 * begin), scratch, offset(scratch, size), 2 * down, middle, live, one, -one)
            at, back = offset(scratch, middle * lanes), offset(x, 2 * (n - begin - down * middle))
            load_mirrored(back, at, offset(at, size), -2 * down, across // 2, 0, live, one, one)
            if block == 0:
                scratch[size] = number(0)
            result = beside(radices, across, table, planes, scratch)
            turn_block(words, block, result, across, size, squares)
        radices, table = offset(words, SECOND_RADICES), offset(tables(words), words[SECOND_ROOTS])
        for block in range((across + 2 * lanes - 1) // (2 * lanes)):
            live = min(2 * lanes, across - 2 * lanes * block)
            a = offset(squares, 4 * size * block)
            b = offset(a, 2 * size if live > lanes else 0)
            combine(a, offset(a, size), b, offset(b, size), scratch, offset(scratch, size), down)
            result = beside(radices, down, table, planes, scratch)
            store(offset(y, 2 * lanes * block), result, offset(result, size), across, down, live, scale)

    return inverse
