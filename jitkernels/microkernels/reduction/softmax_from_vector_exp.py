"""SOFTMAX around a vector exponential, of any library or kernel."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant
from jitkernels.attrs.softmax import SoftmaxAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import PIECE, chunk_rows, no_setup, no_teardown, rows_per_chunk, threads
from jitkernels.microkernels.maths.row_maximum import row_maximum_float32, row_maximum_float64
from jitkernels.microkernels.reduction.simd_row_sum import long_row_sum


def of_rows(attr: SoftmaxAttr) -> bool | str:
    """Return whether the axis is the last, which this kernel requires."""
    return attr.remain == 1 or "its loops are over rows without gaps"


def softmax_threads(attr: SoftmaxAttr) -> list[Variant]:
    """List the variants of SOFTMAX."""
    return threads(attr.rows // (2 * rows_per_chunk(attr.n, PIECE)))


def softmax_kernel(
    attr: SoftmaxAttr, exp: Any, enter: Any = no_setup, leave: Any = no_teardown, parallel: bool = False
) -> RangeKernel:
    """Subtract the maximum for a few rows, call `exp` once over all of them, then divide each row by its sum.

    A NaN that the maximum lost comes back in the exponentials, and through their sum in the whole row.
    """
    number = np.dtype(attr.dtype).type
    row_maximum = row_maximum_float32 if attr.dtype == "float32" else row_maximum_float64
    sum_of = long_row_sum(attr.dtype)

    def body(x: Any, y: Any, rows: int, n: int, remain: int, begin: int, end: int) -> int:
        status = 0
        together = chunk_rows(end - begin, n, PIECE)
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
                factor = number(1) / sum_of(offset(y, first), n)
                for i in range(first, first + n):
                    y[i] = y[i] * factor
        leave(token)
        return status

    signature = attr.signature()
    return RangeKernel(
        f"softmax_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=2 * rows_per_chunk(attr.n, PIECE),
        parallel=parallel,
        reads_first=True,
    )
