"""Products of few rows of floats and of weights of 8 bits: a column becomes floats once for some rows."""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8_weights import MatMulInt8WeightsAttr
from jitkernels.loops.int4_writer import COLUMNS, ROWS
from jitkernels.loops.int8_dots import Int8Dots
from jitkernels.loops.weight_body import body_of
from jitkernels.loops.weight_columns import COLUMNS as UNPACKED
from jitkernels.loops.weight_columns import by_columns
from jitkernels.machine import Target
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset

INFINITE = np.float32(np.inf)
TINY = 31
"""Weights of a group up to which vectors would be left half empty: columns become floats, of whatever groups."""
BLOCK = 32
"""Columns that a thread gets at least, twice."""


def rows_nest(attr: MatMulInt8WeightsAttr, target: Target, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, q, scale, [zero,] c, m, n, groups, size)`` of float32."""
    number, shifted = np.float32, attr.shifted
    dots = {
        (columns, rows): Int8Dots(few=False, shifted=shifted, columns=columns, rows=rows).function()
        for columns in (1, COLUMNS)
        for rows in (1, ROWS)
    }
    columns = by_columns(attr, target, per_byte=1)
    one, columns_of_one, rows_of_one, both = dots[1, 1], dots[COLUMNS, 1], dots[1, ROWS], dots[COLUMNS, ROWS]

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
    def some(
        a: Any, q: Any, scale: Any, zero: Any, j: int, together: int, to: Any, rows: int, n: int, groups: int, size: int
    ) -> None:  # fmt: skip
        """The results of some rows and columns, as many at a time as there are functions for."""
        k = groups * size
        weights, scales, zeros = offset(q, j * k), offset(scale, j * groups), offset(zero, j * groups)
        if together == COLUMNS and rows == ROWS:
            both(weights, a, scales, zeros, to, n, groups, size, 0)
        elif together == COLUMNS:
            for i in range(rows):
                columns_of_one(
                    weights, offset(a, i * k), scales, zeros, offset(to, i * n), n, groups, size, 0
                )
        else:
            for q_ in range(together):
                weights, scales, zeros = (
                    offset(q, (j + q_) * k), offset(scale, (j + q_) * groups), offset(zero, (j + q_) * groups)
                )  # fmt: skip
                if rows == ROWS:
                    rows_of_one(weights, a, scales, zeros, offset(to, q_), n, groups, size, 0)
                else:
                    for i in range(rows):
                        one(
                            weights,
                            offset(a, i * k),
                            scales,
                            zeros,
                            offset(to, i * n + q_),
                            n,
                            groups,
                            size,
                            0,
                        )

    @inlined()
    def computed(
        a: Any, q: Any, scale: Any, zero: Any, c: Any, m: int, n: int, groups: int, size: int, room: Any,
        begin: int, end: int,
    ) -> None:  # fmt: skip
        k = groups * size
        if size <= TINY and m >= 2 * ROWS:
            columns(a, q, scale, zero, c, m, n, groups, size, room, begin, end)
            return
        for top in range(0, m, ROWS):
            rows = min(ROWS, m - top)
            for j in range(begin, end, COLUMNS):
                together, to = min(COLUMNS, end - j), offset(c, top * n + j)
                some(offset(a, top * k), q, scale, zero, j, together, to, rows, n, groups, size)
                # Where a scale is infinite, a weight of 0 makes NaN, and the sum of a group may be too large.
                for i in range(rows):
                    for column in range(together):
                        if not abs(to[i * n + column]) < INFINITE:
                            value = plainly(a, (top + i) * k, q, scale, zero, j + column, groups, size)
                            to[i * n + column] = value

    @inlined()
    def needed(m: int, n: int, groups: int, size: int, begin: int, end: int) -> int:
        return 4 * UNPACKED * groups * size if size <= TINY else 0

    signature = attr.signature()
    return LoopNest(
        f"matmul_int8_weights_rows_{attr.dtype}",
        signature.c_arguments,
        body_of(computed, shifted=shifted),
        extent=signature.index("n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
    )
