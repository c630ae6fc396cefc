"""Joining rows to a row: what SEQ_POOL and EMB_SEQ_POOL share.

Eight rows per pass make one load and one store of the result serve eight loads of input, which is as good
as keeping the result in registers, and add in a tree, which halves the error three times. Sums of many rows
are cut into blocks of rows, whose sums are joined with what that loses, column by column.
"""

from typing import Any

import numpy as np

from jitkernels.maths.exact import lost_in, plus, settled
from jitkernels.native.source import inlined

ROWS = 256
"""Rows of a block: 32 times eight."""
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
    """The function ``(y, at, count, sums, is_first, is_last)`` that takes the sum of a block, in y, to those before it.

    After the last block y is the sum of all. `sums` holds as many totals as `COLUMNS` says, and as much of what they
    lost, from one block to the next.
    """
    number = np.dtype(dtype).type
    columns = COLUMNS[dtype]
    zero = number(0)

    @inlined()
    def join_block(y: Any, at: int, count: int, sums: Any, is_first: bool, is_last: bool) -> None:
        # Each kind of block has a loop of its own: stores that depend on a flag are slow, even if all do or none does.
        if is_first:
            for j in range(count):
                sums[j] = y[at + j]
                sums[columns + j] = zero
        elif is_last:
            for j in range(count):
                lost = plus(sums[columns + j], lost_in(sums[j], y[at + j]))
                y[at + j] = settled(plus(sums[j], y[at + j]), lost)
        else:
            for j in range(count):
                before = sums[j]
                sums[columns + j] = plus(sums[columns + j], lost_in(before, y[at + j]))
                sums[j] = plus(before, y[at + j])

    return join_block


def workspace_of(dtype: str) -> int:
    """Bytes of the `sums` of a block."""
    return 2 * COLUMNS[dtype] * np.dtype(dtype).itemsize
