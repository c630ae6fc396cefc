"""EMB_SEQ_POOL by numba."""

from typing import Any

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen.emb_seq_pool import check
from jitkernels.more.numba.numba_kernel import RowArguments, larger, numba_kernel, real, threads_along, usable

SUMMED_ROWS = 16
"""Rows that are added up before they are joined to the sum of a column."""


def can_be_used(attr: EmbSeqPoolAttr) -> bool | str:
    return "its sums overflow in another order" if attr.pool == "mean" else usable(attr)


@implements(EmbSeqPoolAttr, can_be_used=can_be_used, variants=threads_along("idx_w"))
def emb_seq_pool(attr: EmbSeqPoolAttr, parallel: bool = False) -> RangeKernel:
    is_max, is_mean = attr.pool == "max", attr.pool == "mean"

    def body(table: Any, ids: Any, out: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for s in range(begin, end):
            for j in range(sizes.table_w):
                total, lost = real(0), real(0)
                if is_max:
                    total = table[ids[s] * sizes.table_w + j]
                    for i in range(1, sizes.idx_h):
                        total = larger(total, table[ids[i * sizes.idx_w + s] * sizes.table_w + j])
                else:
                    for first in range(0, sizes.idx_h, SUMMED_ROWS):
                        part = real(0)
                        for i in range(first, min(first + SUMMED_ROWS, sizes.idx_h)):
                            part += table[ids[i * sizes.idx_w + s] * sizes.table_w + j]
                        whole = total + part
                        added = whole - total
                        lost += total - (whole - added) + (part - added)
                        total = whole
                    if lost == lost:
                        total += lost
                    if is_mean:
                        total = total / real(sizes.idx_h)
                out[s * sizes.table_w + j] = total

    return numba_kernel(attr, body, "idx_w", check=check, parallel=parallel)
