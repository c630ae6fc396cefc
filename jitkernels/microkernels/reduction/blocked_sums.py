"""Sums of many rows, cut into blocks: what SEQ_POOL and EMB_SEQ_POOL share.

Each block is added up for itself, and the sums of blocks are joined with what that loses, column by column.
"""

from typing import Any

import numpy as np

from jitkernels.maths.exact import lost_in, plus, settled, times
from jitkernels.native.source import inlined

ROWS = 256
"""Rows of a block: 32 times eight."""
COLUMNS = {"float32": 4096, "float64": 2048}
"""Columns of a block: few enough for their sums to lie on the stack, enough to read memory in long runs."""


def block_joining(dtype: str) -> Any:
    """The function ``(part, count, sums)`` that takes the sums of one more block to those before it.

    `sums` holds as many totals as `COLUMNS` says, and as much of what they lost.
    """
    columns = COLUMNS[dtype]

    @inlined()
    def join_block(part: Any, count: int, sums: Any) -> None:
        for j in range(count):
            before = sums[j]
            sums[columns + j] = plus(sums[columns + j], lost_in(before, part[j]))
            sums[j] = plus(before, part[j])

    return join_block


def block_settling(dtype: str) -> Any:
    """The function ``(y, count, sums, factor)`` that writes the sums of all blocks, times a factor."""
    columns = COLUMNS[dtype]

    @inlined()
    def settle_blocks(y: Any, count: int, sums: Any, factor: Any) -> None:
        for j in range(count):
            y[j] = times(settled(sums[j], sums[columns + j]), factor)

    return settle_blocks


def workspace_of(dtype: str) -> int:
    """Bytes of the `sums` of a block."""
    return 2 * COLUMNS[dtype] * np.dtype(dtype).itemsize
