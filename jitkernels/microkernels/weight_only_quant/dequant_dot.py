"""Weight-only quantized GEMM, column by column: dequantize some columns to floats, then dot products.

Groups may have any size. It is the fallback where weights cannot be used packed, and for results too narrow for the
panels of `jitkernels.microkernels.weight_only_quant.dequant_packed`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.quantized_weights import QuantizedWeightsAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset, vectors
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.dot_microkernel import DotTile
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import TILE_ARGUMENTS, element_size
from jitkernels.microkernels.weight_only_quant.quantized import Quantized, QuantizedSizes, kernel_by_columns

DOT_COLUMNS, DOT_ROWS = 4, 4
"""Columns of weights that are dequantized together, and rows that are multiplied by them."""


def unpacking(attr: QuantizedWeightsAttr, lanes: int, per_byte: int) -> Callable[..., None]:
    """Make the function that dequantizes some bytes of column j into `to`, `per_byte` weights per byte."""
    number, middle_of_range = np.dtype(attr.dtype).type, 8 if per_byte == 2 else 0

    @inlined("contract")
    def unpack(weights: Quantized, to: Any, j: int, sizes: QuantizedSizes, part: Range) -> None:
        groups, size, at = sizes.groups, sizes.size, part.begin
        g = at // size if at > 0 else 0
        while at < part.end:
            stop = min((g + 1) * size, part.end)
            factor = weights.scale[j * groups + g]
            middle = number(middle_of_range if weights.zero is None else weights.zero[j * groups + g])
            source, target = offset(weights.q, j * groups * size + at), offset(to, per_byte * (at - part.begin))
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
    """``(a, weights, c, sizes, scratch, part)``; `scratch` has room for DOT_COLUMNS columns."""
    dtype, lanes = attr.dtype, target.lanes(attr.dtype)
    unpack = unpacking(attr, lanes, per_byte)

    def dots(rows: int, columns: int) -> Any:
        symbol = f"weight_columns_{rows}x{columns}"
        tile = DotTile(symbol, dtype, lanes, rows, columns, 0.0, streams_a=True)
        return ir_function(symbol, dtype, TILE_ARGUMENTS, tile.text())

    both, of_row, of_column, single = dots(DOT_ROWS, DOT_COLUMNS), dots(1, DOT_COLUMNS), dots(DOT_ROWS, 1), dots(1, 1)

    @inlined()
    def in_columns(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, scratch: Any, part: Range) -> None:
        k, m, n = per_byte * sizes.groups * sizes.size, sizes.m, sizes.n
        for j in range(part.begin, part.end, DOT_COLUMNS):
            together = min(DOT_COLUMNS, part.end - j)
            for q in range(together):
                unpack(weights, offset(scratch, q * k), j + q, sizes, Range(0, sizes.groups * sizes.size))
            for i in range(0, m, DOT_ROWS):
                rows = min(DOT_ROWS, m - i)
                if rows == DOT_ROWS and together == DOT_COLUMNS:
                    both(a, i * k, k, scratch, 0, k, c, i * n + j, n, k, 1, DOT_ROWS, DOT_COLUMNS)
                elif together == DOT_COLUMNS:
                    for r in range(rows):
                        of_row(a, (i + r) * k, k, scratch, 0, k, c, (i + r) * n + j, n, k, 1, 1, DOT_COLUMNS)
                elif rows == DOT_ROWS:
                    for q in range(together):
                        of_column(a, i * k, k, scratch, q * k, k, c, i * n + j + q, n, k, 1, DOT_ROWS, 1)
                else:
                    for r in range(rows):
                        for q in range(together):
                            single(a, (i + r) * k, k, scratch, q * k, k, c, (i + r) * n + j + q, n, k, 1, 1, 1)

    return in_columns


def columns_kernel(attr: QuantizedWeightsAttr, target: Target, parallel: bool, per_byte: int) -> RangeKernel:
    """Make the range kernel ``(a, q, scale, [zero,] c, m, n, groups, size)``."""
    bytes_ = element_size(attr.dtype)
    in_columns = by_columns(attr, target, per_byte)

    def body(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, workspace: Any, part: Range) -> None:
        in_columns(a, weights, c, sizes, workspace, part)

    def needed(groups: int, size: int) -> int:
        return DOT_COLUMNS * per_byte * groups * size * bytes_

    name, vector_bytes = f"{attr.name}_columns_{attr.dtype}", target.lanes(attr.dtype) * bytes_
    return kernel_by_columns(attr, name, body, needed, parallel, vector_bytes)
