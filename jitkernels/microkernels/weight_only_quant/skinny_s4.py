"""Skinny GEMM with 4-bit weights: few rows of floats; packed weights are used as they are."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.vnni_packed import has_instruction
from jitkernels.microkernels.weight_only_quant import skinny
from jitkernels.microkernels.weight_only_quant.dequant_dot import DOT_COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns
from jitkernels.microkernels.weight_only_quant.digit_dots import DigitDots
from jitkernels.microkernels.weight_only_quant.dot_emitter import (
    LANES,
    STEP_BYTES,
    STEP_NUMBERS,
    TILE_COLUMNS,
    TILE_ROWS,
    VECTORS_PER_STEP,
)
from jitkernels.microkernels.weight_only_quant.fp32_dots_s4 import FloatDots
from jitkernels.microkernels.weight_only_quant.quantize_activations import (
    LOADED,
    MIN_GROUP_EXPONENT,
    Layout,
    arrange_digits,
)
from jitkernels.microkernels.weight_only_quant.quantized import Quantized, QuantizedSizes, kernel_by_columns
from jitkernels.microkernels.weight_only_quant.skinny import Dots, FloatRows, ResultTile, shift_of


@inlined()
def permute(a: Any, k: int, vectors: int, floats: Any) -> None:
    """Permute a row into the order of the weights in words."""
    for v in range(vectors):
        for lane in range(LANES):
            for s in range(VECTORS_PER_STEP):
                p = v * STEP_NUMBERS + lane * VECTORS_PER_STEP + s
                value = np.float32(0)
                if p < k:
                    value = a[p]
                floats[v * STEP_NUMBERS + s * LANES + lane] = value


@inlined()
def has_small_zeros(zero: Any, first: int, count: int) -> bool:
    """Return whether zero points have four bits, so that sums of products fit into words."""
    bits = np.uint8(0)
    for g in range(first, first + count):
        bits = bits | zero[g]
    return bool(bits < np.uint8(16))


def short_groups(attr: MatMulInt4Attr, target: Target) -> Any:
    """Return the function for groups that do not fill vectors: columns are dequantized, or computed one by one."""
    columns, dot = by_columns(attr, target, per_byte=2), skinny.exact_dot(2)

    @inlined()
    def multiply(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, scratch: Any, part: Range) -> None:
        if sizes.m != 1:
            columns(a, weights, c, sizes, scratch, part)
        else:
            for j in range(part.begin, part.end):
                c[j] = dot(a, weights, j, sizes)

    return multiply


def rows_kernel(attr: MatMulInt4Attr, target: Target, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, packed, scale, [zero,] c, m, n, groups, half)`` of float32."""
    shifted, permutes = attr.shifted, target.is_x86 and target.vector_bytes == 64
    digits, layout = has_instruction("int8", target), Layout(attr.bits // 8, 4)
    by_floats = skinny.row_by_row(Dots(partial(FloatDots, permutes), TILE_COLUMNS, shifted))
    by_digits = skinny.tiles_or_rows(Dots(partial(DigitDots, layout), layout.columns, shifted))
    arranged, multiply_short, repair = (
        arrange_digits(layout, shifted=shifted),
        short_groups(attr, target),
        skinny.repairing(2),
    )

    def body(a: Any, weights: Quantized, c: Any, sizes: QuantizedSizes, workspace: Any, part: Range) -> None:
        groups, size, shift = sizes.groups, sizes.size, shift_of(sizes.size, 0)
        if size == 0 or (shift < 0 and size % STEP_BYTES != 0):
            multiply_short(a, weights, c, sizes, workspace, part)
            return
        k, blocks = 2 * groups * size, (groups * size + LOADED - 1) // LOADED
        in_digits = digits and (shift >= MIN_GROUP_EXPONENT or (shift < 0 and size % LOADED == 0))
        stride = blocks * (layout.bytes // 4 if in_digits else layout.floats)
        for top in range(0, sizes.m, TILE_ROWS):
            rows, unusual = FloatRows(workspace, stride, min(TILE_ROWS, sizes.m - top)), 0
            for i in range(rows.rows):
                row, to = offset(a, (top + i) * k), offset(workspace, i * stride)
                if not in_digits:
                    permute(row, k, (groups * size + STEP_BYTES - 1) // STEP_BYTES, to)
                elif arranged(row, k, blocks, to) != 0:
                    unusual = unusual | 1 << i
            for j in range(part.begin, part.end, TILE_COLUMNS):
                tile = ResultTile(j, min(TILE_COLUMNS, part.end - j), offset(c, top * sizes.n + j))
                fits = True
                if weights.zero is not None:
                    fits = not in_digits or has_small_zeros(weights.zero, j * groups, tile.columns * groups)
                if in_digits:
                    by_digits(weights, rows, tile, sizes, shift)
                else:
                    by_floats(weights, rows, tile, sizes, shift)
                repair(offset(a, top * k), weights, tile, sizes, rows.rows, unusual if fits else -1)

    def needed(m: int, groups: int, size: int) -> int:
        for_rows = min(m, TILE_ROWS) * ((groups * size + LOADED - 1) // LOADED) * layout.floats
        return 4 * max(for_rows, UNPACKED * 2 * groups * size)

    return kernel_by_columns(attr, f"matmul_int4_rows_{attr.dtype}_{attr.bits // 8}", body, needed, parallel)
