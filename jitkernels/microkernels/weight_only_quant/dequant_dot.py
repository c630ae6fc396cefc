"""Weight-only quantized GEMM, column by column: dequantize some columns to floats, then dot products.

Groups may have any size. It is the fallback where weights cannot be used packed, and for results too narrow for the
panels of `jitkernels.microkernels.weight_only_quant.dequant_packed`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset, vectors
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, element_size
from jitkernels.microkernels.gemm.packed_panels import ir_function
from jitkernels.microkernels.weight_only_quant.optional_zero_points import body_of

COLUMNS, ROWS = 4, 4
"""Columns of weights that are dequantized together, and rows that are multiplied by them."""
BLOCK = 32
"""Half of the least number of columns per thread."""


def unpacking(attr: QuantizedWeightsAttr, lanes: int, per_byte: int) -> Callable[..., None]:
    """Make the function that dequantizes bytes first..last of column j into `to`, `per_byte` weights per byte."""
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
    """``(a, packed, scale, zero, c, m, n, groups, size, room, begin, end)``; `room` is scratch for COLUMNS columns."""
    dtype, lanes = attr.dtype, target.lanes(attr.dtype)
    unpack = unpacking(attr, lanes, per_byte)

    def dots(rows: int, columns: int) -> Any:
        symbol = f"weight_columns_{rows}x{columns}"
        tile = DotTile(symbol, dtype, lanes, rows, columns, 0.0, streams_a=True)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, tile.text())

    both, of_row, of_column, single = dots(ROWS, COLUMNS), dots(1, COLUMNS), dots(ROWS, 1), dots(1, 1)

    @inlined()
    def in_columns(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, scratch: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = per_byte * groups * size
        for j in range(begin, end, COLUMNS):
            together = min(COLUMNS, end - j)
            for q in range(together):
                unpack(packed, scale, zero, offset(scratch, q * k), j + q, groups, size, 0, groups * size)
            for i in range(0, m, ROWS):
                rows = min(ROWS, m - i)
                if rows == ROWS and together == COLUMNS:
                    both(a, i * k, k, scratch, 0, k, c, i * n + j, n, k, 1, ROWS, COLUMNS)
                elif together == COLUMNS:
                    for r in range(rows):
                        of_row(a, (i + r) * k, k, scratch, 0, k, c, (i + r) * n + j, n, k, 1, 1, COLUMNS)
                elif rows == ROWS:
                    for q in range(together):
                        of_column(a, i * k, k, scratch, q * k, k, c, i * n + j + q, n, k, 1, ROWS, 1)
                else:
                    for r in range(rows):
                        for q in range(together):
                            single(a, (i + r) * k, k, scratch, q * k, k, c, (i + r) * n + j + q, n, k, 1, 1, 1)

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
