"""Blocked, compensated sums of many rows, which SEQ_POOL and EMB_SEQ_POOL share.

Each block is summed by itself; the sums of blocks are added with Knuth's TwoSum, column by column.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.blocked_summation import ADDS
from jitkernels.microkernels.maths.strict_arithmetic import compensated, plus, times, two_sum_error

ROWS = 8 * ADDS
"""Rows of a block: each eight of them form a tree of additions."""
COLUMNS = {"float32": 4096, "float64": 2048}
"""Columns of a block: few enough for their sums to lie on the stack, enough to read memory in long runs."""


def block_joining(dtype: str) -> Any:
    """Return the function ``(part, count, sums)`` that adds the sums of one more block to the totals.

    `sums` holds `COLUMNS` totals and as many compensation terms.
    """
    columns = COLUMNS[dtype]

    @inlined()
    def join_block(part: Any, count: int, sums: Any) -> None:
        for j in range(count):
            before = sums[j]
            sums[columns + j] = plus(sums[columns + j], two_sum_error(before, part[j]))
            sums[j] = plus(before, part[j])

    return join_block


def block_settling(dtype: str) -> Any:
    """Return the function ``(y, count, sums, factor)`` that writes the sums of all blocks, times a factor."""
    columns = COLUMNS[dtype]

    @inlined()
    def settle_blocks(y: Any, count: int, sums: Any, factor: Any) -> None:
        for j in range(count):
            y[j] = times(compensated(sums[j], sums[columns + j]), factor)

    return settle_blocks


def workspace_of(dtype: str) -> int:
    """Return the bytes of the `sums` of a block."""
    return 2 * COLUMNS[dtype] * np.dtype(dtype).itemsize
