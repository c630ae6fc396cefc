"""Skinny GEMM with quantized weights of float32: few rows of floats; a column is read once for some rows."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.weight_only_quant.dot_emitter import STREAMED, TILE_COLUMNS, TILE_ROWS, DotWriter
from jitkernels.microkernels.weight_only_quant.quantized import Quantized, QuantizedSizes

INFINITE = np.float32(np.inf)
MAX_GROUP_EXPONENT = 5
"""Groups of up to ``4 << MAX_GROUP_EXPONENT - 1`` bytes share vectors; longer ones have whole vectors."""


class FloatRows(NamedTuple):
    """Some rows of floats, `stride` apart."""

    floats: Any
    stride: int
    rows: int


class ResultTile(NamedTuple):
    """Some columns of the result, and where the first of them begins in the first row."""

    column: int
    columns: int
    to: Any


class Dots(NamedTuple):
    """How dot products are emitted. side: columns of a row that are read side by side where they come from memory.

    has_short: whether groups that share vectors have code of their own.
    """

    emitter: Callable[..., DotWriter]
    side: int
    shifted: bool
    has_short: bool = True


def dots_of(dots: Dots, columns: int, rows: int = 1) -> Any:
    """Return the function for a tile of rows and columns; shift: the exponent of short groups, -1 for long ones."""
    has_short = dots.has_short
    short, long = (
        dots.emitter(few=few, shifted=dots.shifted, columns=columns, rows=rows).function() for few in (has_short, False)
    )

    @inlined()
    def dot(weights: Quantized, floats: Any, j: int, to: Any, sizes: QuantizedSizes, shift: int) -> None:
        n, groups, size, first = sizes.n, sizes.groups, sizes.size, j * sizes.groups
        q, scales, zeros = offset(weights.q, first * size), offset(weights.scale, first), offset(weights.zero, first)
        if has_short and shift >= 0:
            short(q, floats, scales, zeros, to, n, groups, size, shift)
        else:
            long(q, floats, scales, zeros, to, n, groups, size, 0)

    return dot


def row_by_row(dots: Dots) -> Any:
    """Return the function for rows one by one."""
    single, several = dots_of(dots, 1), dots_of(dots, TILE_COLUMNS)
    side_by_side = several if dots.side == TILE_COLUMNS else dots_of(dots, dots.side)

    @inlined()
    def multiply_rows(weights: Quantized, rows: FloatRows, tile: ResultTile, sizes: QuantizedSizes, shift: int) -> None:
        streamed = sizes.n * sizes.groups * sizes.size >= STREAMED
        step = dots.side if streamed else TILE_COLUMNS
        whole = tile.columns - tile.columns % step
        for i in range(rows.rows):
            row, result = offset(rows.floats, i * rows.stride), offset(tile.to, i * sizes.n)
            for q in range(0, whole, step):
                if streamed:
                    side_by_side(weights, row, tile.column + q, offset(result, q), sizes, shift)
                else:
                    several(weights, row, tile.column + q, offset(result, q), sizes, shift)
            for q in range(whole, tile.columns):
                single(weights, row, tile.column + q, offset(result, q), sizes, shift)

    return multiply_rows


def tiles_or_rows(dots: Dots) -> Any:
    """Return the function for tiles of TILE_ROWS x TILE_COLUMNS, and for what is smaller."""
    both, each = dots_of(dots, TILE_COLUMNS, TILE_ROWS), row_by_row(dots)

    @inlined()
    def multiply_tile(weights: Quantized, rows: FloatRows, tile: ResultTile, sizes: QuantizedSizes, shift: int) -> None:
        if rows.rows == TILE_ROWS and tile.columns == TILE_COLUMNS:
            both(weights, rows.floats, tile.column, tile.to, sizes, shift)
        else:
            each(weights, rows, tile, sizes, shift)

    return multiply_tile


def exact_dot(per_byte: int) -> Any:
    """Return the function that computes one product in scalar code, for groups of any size."""
    number, middle_of_range = np.float32, 8 if per_byte == 2 else 0

    @inlined("reassoc", "contract")
    def dot(a: Any, weights: Quantized, j: int, sizes: QuantizedSizes) -> Any:
        total, groups, size = number(0), sizes.groups, sizes.size
        for g in range(groups):
            middle = number(middle_of_range if weights.zero is None else weights.zero[j * groups + g])
            factor = weights.scale[j * groups + g]
            from_a, from_b = per_byte * g * size, (j * groups + g) * size
            for p in range(size):
                if per_byte == 2:
                    byte = np.int32(weights.q[from_b + p])
                    total += a[from_a + 2 * p] * ((number(byte & 15) - middle) * factor)
                    total += a[from_a + 2 * p + 1] * ((number(byte >> 4) - middle) * factor)
                else:
                    total += a[from_a + p] * ((number(weights.q[from_b + p]) - middle) * factor)
        return total

    return dot


def repairing(per_byte: int) -> Any:
    """Return the function that recomputes results that a tile may have wrong.

    An infinite scale times a weight of 0 is NaN, and the sum of a group may overflow. unusual: a bit for each row whose
    floats are not representable as digits.
    """
    dot = exact_dot(per_byte)

    @inlined()
    def repair(a: Any, weights: Quantized, tile: ResultTile, sizes: QuantizedSizes, rows: int, unusual: int) -> None:
        k, n = per_byte * sizes.groups * sizes.size, sizes.n
        for i in range(rows):
            for q in range(tile.columns):
                if unusual >> i & 1 != 0 or not abs(tile.to[i * n + q]) < INFINITE:
                    tile.to[i * n + q] = dot(offset(a, i * k), weights, tile.column + q, sizes)

    return repair


@inlined()
def shift_of(size: int, least: int) -> int:
    """Return the exponent e with size == 4 << e, from `least` on, or -1."""
    exponent = -1
    for shift in range(least, MAX_GROUP_EXPONENT):
        if size == 4 << shift:
            exponent = shift
    return exponent
