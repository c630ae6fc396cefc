"""Skinny GEMM with 8-bit weights: few rows of floats; a column is read once for some rows, in place."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.vnni_packed import has_instruction
from jitkernels.microkernels.weight_only_quant.dequant_dot import COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns
from jitkernels.microkernels.weight_only_quant.digit_dots import DigitDots
from jitkernels.microkernels.weight_only_quant.dot_emitter import COLUMNS, ROWS, STREAMED, DotWriter
from jitkernels.microkernels.weight_only_quant.fp32_dots_s8 import Int8Dots
from jitkernels.microkernels.weight_only_quant.optional_zero_points import body_of
from jitkernels.microkernels.weight_only_quant.quantize_activations import LOADED, SHORTEST, Layout, arrange_digits

INFINITE = np.float32(np.inf)
TINY = 31
"""Up to so many weights per group, vectors would be half empty: columns are dequantized, with groups of any size."""
ALONE = 6
"""Stands for the exponent of a single group, which has no other group beside it in a vector."""
BLOCK = 32
"""Half of the least number of columns per thread."""


def rows_nest(attr: MatMulInt8WeightsAttr, target: Target, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, q, scale, [zero,] c, m, n, groups, size)`` of float32."""
    number, shifted = np.float32, attr.shifted
    digits, layout = has_instruction("int8", target), Layout(attr.bits // 8, 8)

    def functions(emitter: Callable[..., DotWriter], side: int, *, few: bool) -> Any:
        """Return the functions for tiles; for one row they read `side` columns side by side from memory."""
        single, several, side_by_side, both = (
            emitter(few=few, shifted=shifted, columns=columns, rows=rows).function()
            for columns, rows in ((1, 1), (COLUMNS, 1), (side, 1), (COLUMNS, ROWS))
        )

        @inlined()
        def some(
            floats: Any, row_stride: int, rows: int, q: Any, scale: Any, zero: Any, j: int, together: int, to: Any,
            n: int, groups: int, size: int, shift: int,
        ) -> None:  # fmt: skip
            k = groups * size
            weights, scales, zeros = offset(q, j * k), offset(scale, j * groups), offset(zero, j * groups)
            if together == COLUMNS and rows == ROWS:
                both(weights, floats, scales, zeros, to, n, groups, size, shift)
                return
            streamed = n * k >= STREAMED
            step = side if streamed else COLUMNS
            whole = together - together % step
            for i in range(rows):
                row, result = offset(floats, i * row_stride), offset(to, i * n)
                for c in range(0, whole, step):
                    at, of, to_c = offset(weights, c * k), c * groups, offset(result, c)
                    if streamed:
                        side_by_side(at, row, offset(scales, of), offset(zeros, of), to_c, n, groups, size, shift)
                    else:
                        several(at, row, offset(scales, of), offset(zeros, of), to_c, n, groups, size, shift)
                for c in range(whole, together):
                    at, of = offset(weights, c * k), c * groups
                    single(at, row, offset(scales, of), offset(zeros, of), offset(result, c), n, groups, size, shift)

        return some

    columns = by_columns(attr, target, per_byte=1)
    by_floats = functions(Int8Dots, COLUMNS, few=False)
    few_digits = many_digits = by_floats
    if digits:
        few_digits, many_digits = (
            functions(partial(DigitDots, layout), layout.columns, few=few) for few in (True, False)
        )
    arranged = arrange_digits(layout, shifted=shifted)
    floats_of_block = layout.bytes // 4

    @inlined()
    def shift_of(size: int) -> int:
        """Return the exponent e with size == 4 << e, or -1."""
        exponent = -1
        for shift in range(SHORTEST, 5):
            if size == 4 << shift:
                exponent = shift
        return exponent

    @inlined("reassoc", "contract")
    def plainly(a: Any, at: int, q: Any, scale: Any, zero: Any, j: int, groups: int, size: int) -> Any:
        total = number(0)
        for g in range(groups):
            middle = number(zero[j * groups + g]) if shifted else number(0)
            factor = scale[j * groups + g]
            from_a, from_b = at + g * size, (j * groups + g) * size
            for p in range(size):
                total += a[from_a + p] * ((number(q[from_b + p]) - middle) * factor)
        return total

    @inlined()
    def computed(
        a: Any, q: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, scratch: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = groups * size
        shift = shift_of(size)
        if groups == 1 and size % LOADED != 0 and size % 4 == 0:
            shift = ALONE
        in_digits = digits and size > 0 and (shift >= 0 or size % LOADED == 0)
        if not in_digits and size <= TINY and m >= 2 * ROWS:
            columns(a, q, scale, zero, c, m, n, groups, size, scratch, begin, end)
            return
        blocks = (k + LOADED - 1) // LOADED
        apart = blocks * floats_of_block
        for top in range(0, m, ROWS):
            rows, unusual, floats = min(ROWS, m - top), 0, offset(a, top * k)
            if digits and in_digits:
                for i in range(rows):
                    if arranged(offset(floats, i * k), k, blocks, offset(scratch, i * apart)) != 0:
                        unusual = unusual | 1 << i
            for j in range(begin, end, COLUMNS):
                together, to = min(COLUMNS, end - j), offset(c, top * n + j)
                if not in_digits:
                    by_floats(floats, k, rows, q, scale, zero, j, together, to, n, groups, size, 0)
                elif digits:
                    if shift >= 0:
                        few_digits(scratch, apart, rows, q, scale, zero, j, together, to, n, groups, size, shift)
                    else:
                        many_digits(scratch, apart, rows, q, scale, zero, j, together, to, n, groups, size, 0)
                # An infinite scale times a weight of 0 is NaN, and the sum of a group may overflow.
                for i in range(rows):
                    for column in range(together):
                        if unusual >> i & 1 != 0 or not abs(to[i * n + column]) < INFINITE:
                            value = plainly(a, (top + i) * k, q, scale, zero, j + column, groups, size)
                            to[i * n + column] = value

    @inlined()
    def needed(m: int, n: int, groups: int, size: int, begin: int, end: int) -> int:
        for_columns = UNPACKED * groups * size if size <= TINY else 0
        for_rows = min(m, ROWS) * ((groups * size + LOADED - 1) // LOADED) * floats_of_block if digits else 0
        return 4 * max(for_columns, for_rows)

    signature = attr.signature()
    return LoopNest(
        f"matmul_int8_weights_rows_{attr.dtype}_{layout.digits}",
        signature.c_arguments,
        body_of(computed, shifted=shifted),
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
    )
