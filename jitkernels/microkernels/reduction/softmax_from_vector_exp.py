"""SOFTMAX written around an exponential of whole vectors, whichever library or kernel that comes from."""

from typing import Any

import numpy as np

from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.loops.pieces import PIECE, ignore, nothing, rows_at_once, rows_of_piece, threads
from jitkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.maths.row_sum import row_sum
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant


def of_rows(attr: SoftmaxAttr) -> bool | str:
    """Whether it is along the last axis, as it is here."""
    return attr.remain == 1 or "its loops are over rows without gaps"


def softmax_threads(attr: SoftmaxAttr) -> list[Variant]:
    """Variants of SOFTMAX."""
    return threads(attr.rows // (2 * rows_at_once(attr.n, PIECE)))


def softmax_nest(
    attr: SoftmaxAttr, exp: Any, enter: Any = nothing, leave: Any = ignore, parallel: bool = False
) -> LoopNest:
    """Differences from the maximum for a few rows, one `exp` over all of them, then each row by its sum.

    A NaN that the maximum lost comes back in the exponentials, and through their sum in the whole row.
    """
    number = np.dtype(attr.dtype).type
    row_maximum = row_maximum_float32 if attr.dtype == "float32" else row_maximum_float64
    sum_of = row_sum(attr.dtype)

    def body(x: Any, y: Any, rows: int, n: int, remain: int, begin: int, end: int) -> int:
        status = 0
        together = rows_of_piece(end - begin, n, PIECE)
        token = enter()
        for top in range(begin, end, together):
            bottom = min(top + together, end)
            for row in range(top, bottom):
                first = row * n
                largest = row_maximum(x, first, first + n)
                for i in range(first, first + n):
                    y[i] = x[i] - largest
            status = min(status, exp(offset(y, top * n), offset(y, top * n), (bottom - top) * n))
            for row in range(top, bottom):
                first = row * n
                factor = number(1) / sum_of(y, first, first + n)
                for i in range(first, first + n):
                    y[i] = y[i] * factor
        leave(token)
        return status

    signature = attr.signature()
    return LoopNest(
        f"softmax_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=2 * rows_at_once(attr.n, PIECE),
        parallel=parallel,
        reads_first=True,
    )
