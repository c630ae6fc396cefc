"""Skinny GEMM with 4-bit weights: few rows of floats; a column is read once for some rows, packed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.gemm.vnni_packed import has_instruction
from jitkernels.microkernels.weight_only_quant.dequant_dot import COLUMNS as UNPACKED
from jitkernels.microkernels.weight_only_quant.dequant_dot import by_columns
from jitkernels.microkernels.weight_only_quant.digit_dots import DigitDots
from jitkernels.microkernels.weight_only_quant.dot_emitter import (
    BYTES,
    COLUMNS,
    LANES,
    NUMBERS,
    ROWS,
    STEPS,
    STREAMED,
    DotWriter,
)
from jitkernels.microkernels.weight_only_quant.fp32_dots_s4 import FloatDots
from jitkernels.microkernels.weight_only_quant.optional_zero_points import body_of
from jitkernels.microkernels.weight_only_quant.quantize_activations import LOADED, SHORTEST, Layout, arrange_digits

INFINITE = np.float32(np.inf)
BLOCK = 32
"""Half of the least number of columns per thread."""


def rows_nest(attr: MatMulInt4Attr, target: Target, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, packed, scale, [zero,] c, m, n, groups, half)`` of float32."""
    number, shifted = np.float32, attr.shifted
    permutes = target.is_x86 and target.vector_bytes == 64
    digits, layout = has_instruction("int8", target), Layout(attr.bits // 8, 4)

    def dots(emitter: Callable[..., DotWriter], columns: int, **rows: int) -> Any:
        """Return the functions for tiles of columns and rows."""
        few, many = (
            emitter(few=is_few, shifted=shifted, columns=columns, **rows).function() for is_few in (True, False)
        )

        @inlined()
        def dot(
            packed: Any, floats: Any, scale: Any, zero: Any, j: int, to: Any, n: int, groups: int, half: int, shift: int
        ) -> None:  # fmt: skip
            first = j * groups
            weights, scales, zeros = offset(packed, first * half), offset(scale, first), offset(zero, first)
            if shift >= 0:
                few(weights, floats, scales, zeros, to, n, groups, half, shift)
            else:
                many(weights, floats, scales, zeros, to, n, groups, half, 0)

        return dot

    def row_by_row(emitter: Callable[..., DotWriter], side: int) -> Any:
        """Return the functions for one row; they read `side` columns side by side where these come from memory."""
        single, several = dots(emitter, 1), dots(emitter, COLUMNS)
        side_by_side = several if side == COLUMNS else dots(emitter, side)

        @inlined()
        def each(
            packed: Any, floats: Any, row_stride: int, rows: int, scale: Any, zero: Any, j: int, together: int, to: Any,
            n: int, groups: int, half: int, shift: int,
        ) -> None:  # fmt: skip
            streamed = n * groups * half >= STREAMED
            step = side if streamed else COLUMNS
            whole = together - together % step
            for i in range(rows):
                row, result = offset(floats, i * row_stride), offset(to, i * n)
                for q in range(0, whole, step):
                    if streamed:
                        side_by_side(packed, row, scale, zero, j + q, offset(result, q), n, groups, half, shift)
                    else:
                        several(packed, row, scale, zero, j + q, offset(result, q), n, groups, half, shift)
                for q in range(whole, together):
                    single(packed, row, scale, zero, j + q, offset(result, q), n, groups, half, shift)

        return each

    by_floats = row_by_row(partial(FloatDots, permutes), COLUMNS)
    by_digits = row_by_row(partial(DigitDots, layout), layout.columns)
    both = dots(partial(DigitDots, layout), COLUMNS, rows=ROWS)
    arranged = arrange_digits(layout, shifted=shifted)
    floats_of_digits, floats_of_block = layout.bytes // 4, layout.floats

    columns = by_columns(attr, target, per_byte=2)

    @inlined()
    def shift_of(half: int) -> int:
        """Return the exponent e with half == 4 << e, or -1."""
        exponent = -1
        for shift in range(5):
            if half == 4 << shift:
                exponent = shift
        return exponent

    @inlined()
    def arrange(a: Any, at: int, k: int, vectors: int, floats: Any) -> None:
        """Permute a row into the order of the weights in words."""
        for v in range(vectors):
            for lane in range(LANES):
                for s in range(STEPS):
                    p = v * NUMBERS + lane * STEPS + s
                    value = number(0)
                    if p < k:
                        value = a[at + p]
                    floats[v * NUMBERS + s * LANES + lane] = value

    @inlined()
    def small(zero: Any, first: int, count: int) -> bool:
        """Return whether zero points have four bits, so that sums of products fit into words."""
        bits = np.uint8(0)
        for g in range(first, first + count):
            bits = bits | zero[g]
        return bool(bits < np.uint8(16))

    @inlined("reassoc", "contract")
    def plainly(a: Any, at: int, packed: Any, scale: Any, zero: Any, j: int, groups: int, half: int) -> Any:
        """Compute one product in scalar code, for groups of any size."""
        total = number(0)
        for g in range(groups):
            middle = number(zero[j * groups + g]) if shifted else number(8)
            factor = scale[j * groups + g]
            from_a, from_b = at + 2 * g * half, (j * groups + g) * half
            for p in range(half):
                byte = np.int32(packed[from_b + p])
                total += a[from_a + 2 * p] * ((number(byte & 15) - middle) * factor)
                total += a[from_a + 2 * p + 1] * ((number(byte >> 4) - middle) * factor)
        return total

    @inlined()
    def computed(
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, half: int, scratch: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k, shift = 2 * groups * half, shift_of(half)
        vectors = (groups * half + BYTES - 1) // BYTES
        if half == 0 or (shift < 0 and half % BYTES != 0):
            if m != 1:
                columns(a, packed, scale, zero, c, m, n, groups, half, scratch, begin, end)
            else:
                for j in range(begin, end):
                    c[j] = plainly(a, 0, packed, scale, zero, j, groups, half)
            return
        blocks = (groups * half + LOADED - 1) // LOADED
        in_digits = digits and (shift >= SHORTEST or (shift < 0 and half % LOADED == 0))
        apart = blocks * (floats_of_digits if in_digits else floats_of_block)
        for top in range(0, m, ROWS):
            rows, unusual = min(ROWS, m - top), 0
            for i in range(rows):
                at, to = (top + i) * k, offset(scratch, i * apart)
                if not in_digits:
                    arrange(a, at, k, vectors, to)
                elif arranged(offset(a, at), k, blocks, to) != 0:
                    unusual = unusual | 1 << i
            for j in range(begin, end, COLUMNS):
                together, to = min(COLUMNS, end - j), offset(c, top * n + j)
                plain = in_digits and shifted and not small(zero, j * groups, together * groups)
                if not in_digits:
                    by_floats(packed, scratch, apart, rows, scale, zero, j, together, to, n, groups, half, shift)
                elif rows == ROWS and together == COLUMNS:
                    both(packed, scratch, scale, zero, j, to, n, groups, half, shift)
                else:
                    by_digits(packed, scratch, apart, rows, scale, zero, j, together, to, n, groups, half, shift)
                # An infinite scale times a weight of 0 is NaN, and the sum of a group may overflow.
                for i in range(rows):
                    for q in range(together):
                        if plain or unusual >> i & 1 != 0 or not abs(to[i * n + q]) < INFINITE:
                            value = plainly(a, (top + i) * k, packed, scale, zero, j + q, groups, half)
                            to[i * n + q] = value

    @inlined()
    def needed(m: int, n: int, groups: int, half: int, begin: int, end: int) -> int:
        for_rows = min(m, ROWS) * ((groups * half + LOADED - 1) // LOADED) * floats_of_block
        return 4 * max(for_rows, UNPACKED * 2 * groups * half)

    signature = attr.signature()
    return LoopNest(
        f"matmul_int4_rows_{attr.dtype}_{layout.digits}",
        signature.c_arguments,
        body_of(computed, shifted=shifted),
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
    )
