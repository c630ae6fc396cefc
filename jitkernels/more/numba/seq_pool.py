"""SEQ_POOL by numba: sums of parts of a column, joined with what that loses."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import larger, numba_kernel, real, threads_along, usable

float64 = np.float64
SUMMED_ROWS = 16
"""Rows that are added up before they are joined to the sum of a column."""


@implements(SeqPoolAttr, can_be_used=usable, variants=threads_along("w"))
def seq_pool(attr: SeqPoolAttr, parallel: bool = False) -> RangeKernel:
    is_mean, is_root = attr.pool == "mean", attr.pool == "sqrt"

    def pool_max(x: Any, y: Any, h: int, w: int, begin: int, end: int) -> None:
        for j in range(begin, end):
            y[j] = x[j]
        for i in range(1, h):
            for j in range(begin, end):
                y[j] = larger(y[j], x[i * w + j])

    def pool_sum(x: Any, y: Any, h: int, w: int, begin: int, end: int) -> None:
        divisor = float64(1)
        if is_mean:
            divisor = float64(h)
        if is_root:
            divisor = float64(h) ** 0.5
        for j in range(begin, end):
            total, lost = real(0), real(0)
            for first in range(0, h, SUMMED_ROWS):
                part = real(0)
                for i in range(first, min(first + SUMMED_ROWS, h)):
                    part += x[i * w + j]
                whole = total + part
                added = whole - total
                lost += total - (whole - added) + (part - added)
                total = whole
            if lost == lost:
                total += lost
            y[j] = real(total / divisor)

    return numba_kernel(attr, pool_max if attr.pool == "max" else pool_sum, "w", parallel=parallel)
