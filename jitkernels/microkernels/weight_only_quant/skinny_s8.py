"""Skinny GEMM with 8-bit weights: few rows of floats; a column is read once for some rows, in place."""

from functools import partial
from typing import Any

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, offset
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.vnni_packed import has_instruction
from jitkernels.microkernels.weight_only_quant import skinny
from jitkernels.microkernels.weight_only_quant.dequant_dot import DOT_COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns
from jitkernels.microkernels.weight_only_quant.digit_dots import DigitDots
from jitkernels.microkernels.weight_only_quant.dot_emitter import TILE_COLUMNS, TILE_ROWS
from jitkernels.microkernels.weight_only_quant.fp32_dots_s8 import Int8Dots
from jitkernels.microkernels.weight_only_quant.quantize_activations import (
    LOADED,
    MIN_GROUP_EXPONENT,
    Layout,
    arrange_digits,
)
from jitkernels.microkernels.weight_only_quant.quantized import Quantized, QuantizedSizes, kernel_by_columns
from jitkernels.microkernels.weight_only_quant.skinny import Dots, FloatRows, ResultTile, shift_of

MAX_SMALL_GROUP = 31
"""Up to so many weights per group, vectors would be half empty: columns are dequantized, with groups of any size."""
SINGLE_GROUP_EXPONENT = 6
"""Stands for the exponent of a single group, which has no other group beside it in a vector."""


def rows_kernel(attr: MatMulInt8WeightsAttr, target: Target, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, q, scale, [zero,] c, m, n, groups, size)`` of float32."""
    shifted, digits, layout = attr.shifted, has_instruction("int8", target), Layout(attr.bits // 8, 8)
    columns, repair = by_columns(attr, target, per_byte=1), skinny.repairing(1)
    by_floats = by_digits = skinny.tiles_or_rows(Dots(Int8Dots, TILE_COLUMNS, shifted, has_short=False))
    if digits:
        by_digits = skinny.tiles_or_rows(Dots(partial(DigitDots, layout), layout.columns, shifted))
    arranged, floats_of_block = arrange_digits(layout, shifted=shifted), layout.bytes // 4

    def body(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, workspace: Any, part: Range) -> None:
        size, k, shift = sizes.size, sizes.groups * sizes.size, shift_of(sizes.size, MIN_GROUP_EXPONENT)
        if sizes.groups == 1 and size % LOADED != 0 and size % 4 == 0:
            shift = SINGLE_GROUP_EXPONENT
        in_digits = digits and size > 0 and (shift >= 0 or size % LOADED == 0)
        if not in_digits and size <= MAX_SMALL_GROUP and sizes.m >= 2 * TILE_ROWS:
            columns(a, weights, c, sizes, workspace, part)
            return
        blocks = (k + LOADED - 1) // LOADED
        for top in range(0, sizes.m, TILE_ROWS):
            floats, count, unusual = offset(a, top * k), min(TILE_ROWS, sizes.m - top), 0
            if digits and in_digits:
                for i in range(count):
                    to = offset(workspace, i * blocks * floats_of_block)
                    if arranged(offset(floats, i * k), k, blocks, to) != 0:
                        unusual = unusual | 1 << i
            for j in range(part.begin, part.end, TILE_COLUMNS):
                tile = ResultTile(j, min(TILE_COLUMNS, part.end - j), offset(c, top * sizes.n + j))
                if digits and in_digits:
                    by_digits(weights, FloatRows(workspace, blocks * floats_of_block, count), tile, sizes, shift)
                else:
                    by_floats(weights, FloatRows(floats, k, count), tile, sizes, -1)
                repair(floats, weights, tile, sizes, count, unusual)

    def needed(m: int, groups: int, size: int) -> int:
        for_columns = UNPACKED * groups * size if size <= MAX_SMALL_GROUP else 0
        for_rows = min(m, TILE_ROWS) * ((groups * size + LOADED - 1) // LOADED) * floats_of_block if digits else 0
        return 4 * max(for_columns, for_rows)

    return kernel_by_columns(attr, f"matmul_int8_weights_rows_{attr.dtype}_{attr.bits // 8}", body, needed, parallel)
