"""Products of few rows of floats and of weights of 4 bits: a column is read once for some rows, as it is packed."""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int4 import MatMulInt4Attr
from jitkernels.loops.int4_body import body_of
from jitkernels.loops.int4_dot import BYTES, LANES, NUMBERS, STEPS, int4_dot
from jitkernels.loops.int4_dot import TOGETHER as COLUMNS
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset

TOGETHER = 4
"""Rows for which a column is read once."""
INFINITE = np.float32(np.inf)
BLOCK = 32
"""Columns that a thread gets at least, twice."""


def rows_nest(attr: MatMulInt4Attr, target: Target, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, packed, scale, [zero,] c, m, n, groups, half)``."""
    number = np.dtype(attr.dtype).type
    single, shifted = attr.dtype == "float32", attr.shifted
    permutes = target.is_x86 and target.vector_bytes == 64
    few, few_together, many, many_together = (
        int4_dot(few=is_few, shifted=shifted, permutes=permutes, columns=columns)
        for is_few in (True, False)
        for columns in (1, COLUMNS)
    )

    @inlined()
    def shift_of(half: int) -> int:
        """Which power of two times 4 it is, or -1."""
        found = -1
        for shift in range(5):
            if half == 4 << shift:
                found = shift
        return found

    @inlined()
    def arrange(a: Any, at: int, k: int, vectors: int, floats: Any) -> None:
        """A row in the order of weights in words."""
        for v in range(vectors):
            for lane in range(LANES):
                for s in range(STEPS):
                    p = v * NUMBERS + lane * STEPS + s
                    value = number(0)
                    if p < k:
                        value = a[at + p]
                    floats[v * NUMBERS + s * LANES + lane] = value

    @inlined("reassoc", "contract")
    def plainly(a: Any, at: int, packed: Any, scale: Any, zero: Any, j: int, groups: int, half: int) -> Any:
        """One product, for groups of any size."""
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
        a: Any, packed: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, half: int, room: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k, shift = 2 * groups * half, shift_of(half)
        vectors = (groups * half + BYTES - 1) // BYTES
        if not single or half == 0 or (shift < 0 and half % BYTES != 0):
            for j in range(begin, end):
                for i in range(m):
                    c[i * n + j] = plainly(a, i * k, packed, scale, zero, j, groups, half)
            return
        if single:
            row = vectors * NUMBERS
            for top in range(0, m, TOGETHER):
                rows = min(TOGETHER, m - top)
                for i in range(rows):
                    arrange(a, (top + i) * k, k, vectors, offset(room, i * row))
                for j in range(begin, end, COLUMNS):
                    together = min(COLUMNS, end - j)
                    for i in range(rows):
                        floats, to = offset(room, i * row), offset(c, (top + i) * n + j)
                        if together == COLUMNS:
                            weights, first = offset(packed, j * groups * half), j * groups
                            scales, zeros = offset(scale, first), offset(zero, first)
                            if shift >= 0:
                                few_together(weights, floats, scales, zeros, to, groups, half, shift)
                            else:
                                many_together(weights, floats, scales, zeros, to, groups, half, 0)
                        else:
                            for q in range(together):
                                weights, first = offset(packed, (j + q) * groups * half), (j + q) * groups
                                scales, zeros = offset(scale, first), offset(zero, first)
                                if shift >= 0:
                                    few(weights, floats, scales, zeros, offset(to, q), groups, half, shift)
                                else:
                                    many(weights, floats, scales, zeros, offset(to, q), groups, half, 0)
                        # Where a scale is infinite, a weight of 0 makes NaN, and the sum of a group may be too large.
                        for q in range(together):
                            if not abs(to[q]) < INFINITE:
                                to[q] = plainly(a, (top + i) * k, packed, scale, zero, j + q, groups, half)

    @inlined()
    def needed(m: int, n: int, groups: int, half: int, begin: int, end: int) -> int:
        if not single:
            return 0
        return 4 * min(m, TOGETHER) * ((groups * half + BYTES - 1) // BYTES) * NUMBERS

    signature = attr.signature()
    return LoopNest(
        f"matmul_int4_rows_{attr.dtype}",
        signature.c_arguments,
        body_of(computed, shifted=shifted),
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
    )
