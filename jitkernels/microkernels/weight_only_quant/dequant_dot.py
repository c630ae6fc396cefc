"""Products of floats and of quantized weights column by column: some columns become floats, then dot products follow.

Groups may have any size. It is what is left where weights cannot be used as they lie, and for results too narrow for
the panels of `jitkernels.loops.weight_panels`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.loops.dot_tile import DotTile
from jitkernels.loops.matmul_packed import ir_function
from jitkernels.loops.tile import TILE_ARGUMENTS, element_size
from jitkernels.loops.weight_body import body_of
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset, vectors

COLUMNS, ROWS = 4, 4
"""At a time: of weights that are made floats, and of rows that are multiplied by them."""
BLOCK = 32
"""Columns that a thread gets at least, twice."""


def unpacking(attr: QuantizedWeightsAttr, lanes: int, per_byte: int) -> Callable[..., None]:
    """Makes floats ``to`` of the weights of bytes first..last of column j, so many in each byte."""
    number, shifted = np.dtype(attr.dtype).type, attr.shifted

    @inlined("contract")
    def unpack(
        packed: Any, scale: Any, zero: Any, to: Any, j: int, groups: int, size: int, first: int, last: int
    ) -> None:
        at, g = first, first // size if first > 0 else 0
        while at < last:
            stop = min((g + 1) * size, last)
            factor = scale[j * groups + g]
            middle = number(zero[j * groups + g]) if shifted else number(8 if per_byte == 2 else 0)
            source, target = offset(packed, j * groups * size + at), offset(to, per_byte * (at - first))
            if per_byte == 2:
                for p in range(stop - at):
                    byte = np.int32(source[p])
                    target[2 * p] = (number(byte & 15) - middle) * factor
                    target[2 * p + 1] = (number(byte >> 4) - middle) * factor
            else:
                for p in vectors(0, stop - at, lanes):
                    target[p] = (number(source[p]) - middle) * factor
            at = stop
            g += 1

    return unpack


def by_columns(attr: QuantizedWeightsAttr, target: Target, per_byte: int) -> Callable[..., None]:
    """``(a, packed, scale, zero, c, m, n, groups, size, room, begin, end)``; `room` takes COLUMNS columns of floats."""
    dtype, lanes = attr.dtype, target.lanes(attr.dtype)
    unpack = unpacking(attr, lanes, per_byte)

    def dots(rows: int, columns: int) -> Any:
        symbol = f"weight_columns_{rows}x{columns}"
        tile = DotTile(symbol, dtype, lanes, rows, columns, 0.0, streams_a=True)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, tile.text())

    both, of_row, of_column, one = dots(ROWS, COLUMNS), dots(1, COLUMNS), dots(ROWS, 1), dots(1, 1)

    @inlined()
    def in_columns(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, room: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = per_byte * groups * size
        for j in range(begin, end, COLUMNS):
            together = min(COLUMNS, end - j)
            for q in range(together):
                unpack(packed, scale, zero, offset(room, q * k), j + q, groups, size, 0, groups * size)
            for i in range(0, m, ROWS):
                rows = min(ROWS, m - i)
                if rows == ROWS and together == COLUMNS:
                    both(a, i * k, k, room, 0, k, c, i * n + j, n, k, 1, ROWS, COLUMNS)
                elif together == COLUMNS:
                    for r in range(rows):
                        of_row(a, (i + r) * k, k, room, 0, k, c, (i + r) * n + j, n, k, 1, 1, COLUMNS)
                elif rows == ROWS:
                    for q in range(together):
                        of_column(a, i * k, k, room, q * k, k, c, i * n + j + q, n, k, 1, ROWS, 1)
                else:
                    for r in range(rows):
                        for q in range(together):
                            one(a, (i + r) * k, k, room, q * k, k, c, (i + r) * n + j + q, n, k, 1, 1, 1)

    return in_columns


def columns_nest(attr: QuantizedWeightsAttr, target: Target, parallel: bool, per_byte: int) -> LoopNest:
    """Make the loop nest ``(a, packed, scale, [zero,] c, m, n, groups, size)``."""
    dtype, bytes_ = attr.dtype, element_size(attr.dtype)

    @inlined()
    def needed(m: int, n: int, groups: int, size: int, begin: int, end: int) -> int:
        return COLUMNS * per_byte * groups * size * bytes_

    signature = attr.signature()
    return LoopNest(
        f"{attr.name}_columns_{dtype}",
        signature.c_arguments,
        body_of(by_columns(attr, target, per_byte), shifted=attr.shifted),
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=dtype,
        vector_bytes=target.lanes(dtype) * bytes_,
    )
