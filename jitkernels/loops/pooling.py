"""Joining rows to a row: what SEQ_POOL and EMB_SEQ_POOL share.

Eight rows per pass make one load and one store of the result serve eight loads of input, which is as good
as keeping the result in registers, and add in a tree, which halves the error three times. Sums of many rows
are cut into blocks of rows, whose sums are joined with what that loses, column by column.
"""

from typing import Any

import numpy as np

from jitkernels.maths.exact import lost_in, plus, settled
from jitkernels.native.source import inlined

ROWS = 257
"""Rows of a block: one, and 32 times eight."""
COLUMNS = {"float32": 4096, "float64": 2048}
"""Columns of a block: few enough for their sums to lie on the stack, enough to read memory in long runs."""


@inlined()
def larger(a: Any, b: Any) -> Any:
    """The larger of two, NaN if either is NaN, as `numpy.maximum`."""
    return a if (a > b) | (a != a) else b


def joining(pool: str) -> Any:
    """What joins two elements: their sum, or for "max" the larger one."""
    return larger if pool == "max" else plus


def block_joining(dtype: str) -> Any:
    """The function ``(y, at, count, sums, is_first)`` that makes of the sum of a block, in y, that of all so far.

    `sums` holds as many totals as `COLUMNS` says, and as much of what they lost, from one block to the next.
    """
    number = np.dtype(dtype).type
    columns = COLUMNS[dtype]
    zero, nothing = number(0), number(-0.0)  # which added to a negative zero leaves it one

    @inlined()
    def join_block(y: Any, at: int, count: int, sums: Any, is_first: bool) -> None:
        for j in range(count):
            before = nothing if is_first else sums[j]
            lost = zero if is_first else sums[columns + j]
            part = y[at + j]
            lost = plus(lost, lost_in(before, part))
            total = plus(before, part)
            sums[j] = total
            sums[columns + j] = lost
            y[at + j] = settled(total, lost)

    return join_block


def workspace_of(dtype: str) -> int:
    """Bytes of the `sums` of a block."""
    return 2 * COLUMNS[dtype] * np.dtype(dtype).itemsize
