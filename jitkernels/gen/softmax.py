"""Generated SOFTMAX: a row, or a group of short rows, is finished while it lies in the first-level cache."""

from typing import Any

import numpy as np

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.loops.pieces import rows_at_once, rows_of_piece
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.exact import lost_in, plus
from jitkernels.maths.exp import LOWEST_32, LOWEST_64, limited_exp_float32, limited_exp_float64
from jitkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.native.loop_nest import FLAGS, LoopNest
from jitkernels.native.source import apart, inlined
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 2048
"""Elements that a thread gets at least, and that a group of short rows has."""
SHORT = 256
"""Rows up to this length are worth trying in groups, whose exponentials fill whole vectors."""
SUMMED = 2048
"""Exponentials that are added up before they are joined to the sum of a long row."""


def variants(attr: SoftmaxAttr) -> list[Variant]:
    """Vector widths and threads; short rows one by one or in groups."""
    single = widths_and_threads(attr.rows // rows_at_once(attr.n, BLOCK_ELEMENTS))
    if attr.rows == 1 or attr.n > SHORT:
        return single
    return [*({"grouped": True, **variant} for variant in single), *single]


@implements(SoftmaxAttr, variants=variants)
def softmax(
    attr: SoftmaxAttr, grouped: bool = False, parallel: bool = False, vector_bytes: int = 64
) -> LoopNest:
    """A NaN that the maximum lost comes back in the exponentials and, through their sum, in the whole row."""
    number: Any = np.dtype(attr.dtype).type
    single = attr.dtype == "float32"
    lowest: Any = LOWEST_32 if single else LOWEST_64
    exp = limited_exp_float32 if single else limited_exp_float64
    row_maximum = row_maximum_float32 if single else row_maximum_float64

    @inlined(*FLAGS)
    def every_row(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        for row in range(begin, end):
            first = row * n
            largest = row_maximum(x, first, first + n)
            total, lost = number(0), number(0)
            start, last = first, first + n
            while True:
                stop = min(start + SUMMED, last)
                part = number(0)
                for i in range(start, stop):
                    value = exp(max(x[i] - largest, lowest))
                    y[i] = value
                    part += value
                if n <= SUMMED:
                    total = part
                    break
                lost += lost_in(total, part)
                total = plus(total, part)
                if stop == last:
                    total = plus(total, lost)
                    break
                start = stop
            factor = number(1) / total
            for i in range(first, first + n):
                y[i] = y[i] * factor

    def one_by_one(x: Any, y: Any, rows: int, n: int, begin: int, end: int) -> None:
        every_row(x, y, n, begin, end)

    @apart()
    def long_rows(x: Any, y: Any, n: int, begin: int, end: int) -> None:
        every_row(x, y, n, begin, end)

    def in_groups(x: Any, y: Any, rows: int, n: int, begin: int, end: int) -> None:
        if n > SUMMED:  # rows so long are not meant to come here: their sums need care
            long_rows(x, y, n, begin, end)
            return
        together = rows_of_piece(end - begin, n, BLOCK_ELEMENTS)
        for top in range(begin, end, together):
            bottom = min(top + together, end)
            for row in range(top, bottom):
                largest = row_maximum(x, row * n, row * n + n)
                for i in range(row * n, row * n + n):
                    y[i] = max(x[i] - largest, lowest)
            for i in range(top * n, bottom * n):
                y[i] = exp(y[i])
            for row in range(top, bottom):
                total = number(0)
                for i in range(row * n, row * n + n):
                    total += y[i]
                factor = number(1) / total
                for i in range(row * n, row * n + n):
                    y[i] = y[i] * factor

    signature = attr.signature()
    return LoopNest(
        f"softmax_{attr.dtype}",
        signature.c_arguments,
        in_groups if grouped else one_by_one,
        extent=signature.index("rows"),
        block=rows_at_once(attr.n, BLOCK_ELEMENTS) if parallel else 1,
        parallel=parallel,
        vector_bytes=vector_bytes,
        reads_first=True,
    )
