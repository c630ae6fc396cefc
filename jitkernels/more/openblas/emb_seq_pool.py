"""EMB_SEQ_POOL by OpenBLAS: each row looked up is added to the result by ``cblas_?axpy``."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, offset
from jitkernels.gen.emb_seq_pool import LookupExtents, check
from jitkernels.microkernels.chunking import grain, threads
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.blocked_sums import COLUMNS, block_joining, block_settling, workspace_of
from jitkernels.more.openblas.library import external, one_thread, reason_against

SEQUENTIAL_ROWS = 33
"""Rows per block, which are added sequentially."""


def can_be_used(attr: EmbSeqPoolAttr) -> bool | str:
    if attr.pool == "max":
        return "a maximum is not expressible by axpy"
    return reason_against(attr.dtype, attr.table_w) or True


def variants(attr: EmbSeqPoolAttr) -> list[Variant]:
    return threads(attr.idx_w // grain(attr.idx_h * attr.table_w))


@implements(EmbSeqPoolAttr, can_be_used=can_be_used, variants=variants)
def emb_seq_pool(attr: EmbSeqPoolAttr, parallel: bool = False) -> RangeKernel:
    number = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    join_block, settle_blocks = block_joining(attr.dtype), block_settling(attr.dtype)
    most = COLUMNS[attr.dtype]
    divides = attr.pool == "mean"
    axpy = external("cblas_saxpy" if attr.dtype == "float32" else "cblas_daxpy")

    def body(table: Any, ids: Any, out: Any, extents: LookupExtents, workspace: Any, part_of_batch: Range) -> None:
        table_w, idx_h, idx_w, sums = extents.table_w, extents.idx_h, extents.idx_w, workspace
        one_thread()
        for sequence in range(part_of_batch.begin, part_of_batch.end):
            result, column = offset(out, sequence * table_w), offset(ids, sequence)
            weight = one / number(idx_h) if divides else one  # so that no sum overflows where the mean does not
            if idx_h == 0:
                for j in range(table_w):
                    result[j] = zero
                continue
            rows, columns = (idx_h, table_w) if idx_h <= SEQUENTIAL_ROWS else (SEQUENTIAL_ROWS, most)
            for left in range(0, table_w, columns):
                count = min(columns, table_w - left)
                part = offset(result, left)
                for top in range(0, idx_h, rows):
                    # The first row is copied: an addition to zero would lose the sign of its negative zeros.
                    row = column[top * idx_w] * table_w + left
                    for j in range(count):
                        part[j] = table[row + j] * weight
                    for i in range(top + 1, min(top + rows, idx_h)):
                        row = column[i * idx_w] * table_w + left
                        axpy(count, weight, offset(table, row), 1, part, 1)
                    if rows < idx_h and top == 0:
                        for j in range(count):
                            sums[j], sums[most + j] = part[j], zero
                    elif rows < idx_h:
                        join_block(part, count, sums)
                if rows < idx_h:
                    settle_blocks(part, count, sums, one)

    return range_kernel_of(
        attr,
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        body,
        extent="idx_w",
        block=grain(attr.idx_h * attr.table_w),
        parallel=parallel,
        workspace=workspace_of(attr.dtype),
        workspace_dtype=attr.dtype,
        check=check,
    )
