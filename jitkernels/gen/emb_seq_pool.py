"""Generated EMB_SEQ_POOL (embedding bag): one pass checks the ids, then rows are reduced in registers."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import apart, inlined, offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.reduction.bf16_embedding_bag import pool_nest
from jitkernels.microkernels.reduction.blocked_sums import COLUMNS, ROWS, block_joining, block_settling, workspace_of
from jitkernels.microkernels.reduction.embedding_bag_rows import pool_rows
from jitkernels.microkernels.tuning_space import widths_and_threads

BLOCK_ELEMENTS = 16384
"""Least number of elements per thread."""


def check(table: Any, ids: Any, out: Any, table_h: int, table_w: int, idx_h: int, idx_w: int) -> int:
    """Count the ids outside the table; branch-free, so that LLVM vectorizes it."""
    wrong = 0
    for i in range(idx_h * idx_w):
        wrong += (ids[i] < 0) | (ids[i] >= table_h)
    return wrong


def variants(attr: EmbSeqPoolAttr) -> list[Variant]:
    return widths_and_threads(attr.idx_w // grain(attr.idx_h * attr.table_w, BLOCK_ELEMENTS))


@implements(EmbSeqPoolAttr, variants=variants)
def emb_seq_pool(attr: EmbSeqPoolAttr, **variant: Any) -> LoopNest:
    if attr.dtype == "bfloat16":
        return pool_nest(attr, check, grain(attr.idx_h * attr.table_w, BLOCK_ELEMENTS), variant)
    number: Any = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    join_block, settle_blocks = block_joining(attr.dtype), block_settling(attr.dtype)
    columns, is_max, is_scaled = COLUMNS[attr.dtype], attr.pool == "max", attr.pool == "mean"
    rows_to_one = pool_rows(attr.pool, attr.dtype, variant.get("vector_bytes", 64), looked_up=True)

    @inlined()
    def pool_part(
        table: Any, table_w: int, h: int, y: Any, width: int, is_more: int, factor: Any, ids: Any, idx_w: int
    ) -> None:
        if is_scaled:
            rows_to_one(table, table_w, h, y, width, is_more, factor, ids, idx_w)
        else:
            rows_to_one(table, table_w, h, y, width, is_more, ids, idx_w)

    @apart()
    def pool_blocks(table: Any, table_w: int, h: int, y: Any, sums: Any, factor: Any, ids: Any, idx_w: int) -> None:
        left = 0
        while left < table_w:
            count, top, at, part = min(columns, table_w - left), ROWS, offset(table, left), offset(y, left)
            pool_part(at, table_w, ROWS, sums, count, 0, one, ids, idx_w)
            for j in range(count):
                sums[columns + j] = zero
            while top < h:
                pool_part(at, table_w, min(ROWS, h - top), part, count, 0, one, offset(ids, top * idx_w), idx_w)
                join_block(part, count, sums)
                top += ROWS
            settle_blocks(part, count, sums, factor)
            left += columns

    def body(
        table: Any,
        ids: Any,
        out: Any,
        table_h: int,
        table_w: int,
        idx_h: int,
        idx_w: int,
        sums: Any,
        begin: int,
        end: int,
    ) -> None:
        if idx_h == 0:
            for j in range(begin * table_w, end * table_w):
                out[j] = zero
            return
        if idx_h == 1:
            for sequence in range(begin, end):
                y, row = offset(out, sequence * table_w), offset(table, ids[sequence] * table_w)
                for j in range(table_w):
                    y[j] = row[j]
            return
        factor = one / number(idx_h) if is_scaled else one
        for sequence in range(begin, end):
            y, column = offset(out, sequence * table_w), offset(ids, sequence)
            if is_max or idx_h <= ROWS:
                pool_part(table, table_w, idx_h, y, table_w, 0, factor, column, idx_w)
            else:
                pool_blocks(table, table_w, idx_h, y, sums, factor, column, idx_w)

    signature = attr.signature()
    return LoopNest(
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("idx_w"),
        block=grain(attr.idx_h * attr.table_w, BLOCK_ELEMENTS) if variant.get("parallel") else 1,
        workspace=workspace_of(attr.dtype),
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays do not alias: callers guarantee it
        check=check,
        **variant,
    )
