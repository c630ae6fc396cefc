"""Generated EMB_SEQ_POOL (embedding bag): one pass checks the ids, then rows are reduced in registers."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, noinline, offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.reduction.bf16_embedding_bag import pool_kernel
from jitkernels.microkernels.reduction.blocked_sums import COLUMNS, ROWS, block_joining, block_settling, workspace_of
from jitkernels.microkernels.reduction.embedding_bag_rows import pool_rows
from jitkernels.microkernels.tuning_space import widths_and_threads

POOL_THREAD_ELEMENTS = 16384
"""Least number of elements per thread."""


class Sequences(NamedTuple):
    """Sequences of ids: those of a sequence are `idx_w` apart, the rows of the table have `table_w` elements."""

    table: Any
    table_w: int
    ids: Any
    idx_w: int


class LookupExtents(NamedTuple):
    """The extents but for the rows of the table."""

    table_w: int
    idx_h: int
    idx_w: int


def check(ids: Any, table_h: int, idx_h: int, idx_w: int) -> int:
    """Count the ids outside the table; branch-free, so that LLVM vectorizes it."""
    wrong = 0
    for i in range(idx_h * idx_w):
        wrong += (ids[i] < 0) | (ids[i] >= table_h)
    return wrong


def _block(attr: EmbSeqPoolAttr) -> int:
    return grain(attr.idx_h * attr.table_w, POOL_THREAD_ELEMENTS)


def variants(attr: EmbSeqPoolAttr) -> list[Variant]:
    return widths_and_threads(attr.idx_w // _block(attr))


def pooling_of(attr: EmbSeqPoolAttr, vector_bytes: int) -> Any:
    """Return the function that pools one sequence of `h` ids."""
    number: Any = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    join_block, settle_blocks = block_joining(attr.dtype), block_settling(attr.dtype)
    columns, is_max, is_scaled = COLUMNS[attr.dtype], attr.pool == "max", attr.pool == "mean"
    rows_to_one = pool_rows(attr.pool, attr.dtype, vector_bytes, looked_up=True)

    @inlined()
    def pool_part(sequence: Sequences, h: int, y: Any, width: int, factor: Any) -> None:
        table, table_w, ids, idx_w = sequence.table, sequence.table_w, sequence.ids, sequence.idx_w
        if is_scaled:
            rows_to_one(table, table_w, h, y, width, 0, factor, ids, idx_w)
        else:
            rows_to_one(table, table_w, h, y, width, 0, ids, idx_w)

    @noinline()
    def pool_blocks(sequence: Sequences, h: int, y: Any, sums: Any, factor: Any) -> None:
        table_w, idx_w, first = sequence.table_w, sequence.idx_w, 0
        while first < table_w:
            count, top, part = min(columns, table_w - first), ROWS, offset(y, first)
            strip = Sequences(offset(sequence.table, first), table_w, sequence.ids, idx_w)
            pool_part(strip, ROWS, sums, count, one)
            for j in range(count):
                sums[columns + j] = zero
            while top < h:
                block = Sequences(strip.table, table_w, offset(sequence.ids, top * idx_w), idx_w)
                pool_part(block, min(ROWS, h - top), part, count, one)
                join_block(part, count, sums)
                top += ROWS
            settle_blocks(part, count, sums, factor)
            first += columns

    @inlined()
    def pool(sequence: Sequences, h: int, y: Any, sums: Any, factor: Any) -> None:
        if is_max or h <= ROWS:
            pool_part(sequence, h, y, sequence.table_w, factor)
        else:
            pool_blocks(sequence, h, y, sums, factor)

    return pool


@implements(EmbSeqPoolAttr, variants=variants)
def emb_seq_pool(attr: EmbSeqPoolAttr, **variant: Any) -> RangeKernel:
    if attr.dtype == "bfloat16":
        return pool_kernel(attr, check, _block(attr), variant)
    number: Any = np.dtype(attr.dtype).type
    zero, one, is_scaled = number(0), number(1), attr.pool == "mean"
    pool = pooling_of(attr, variant.get("vector_bytes", 64))

    def body(table: Any, ids: Any, out: Any, extents: LookupExtents, workspace: Any, part: Range) -> None:
        table_w, idx_h, idx_w = extents.table_w, extents.idx_h, extents.idx_w
        if idx_h == 0:
            for j in range(part.begin * table_w, part.end * table_w):
                out[j] = zero
            return
        if idx_h == 1:
            for i in range(part.begin, part.end):
                y, row = offset(out, i * table_w), offset(table, ids[i] * table_w)
                for j in range(table_w):
                    y[j] = row[j]
            return
        factor = one / number(idx_h) if is_scaled else one
        for i in range(part.begin, part.end):
            sequence = Sequences(table, table_w, offset(ids, i), idx_w)
            pool(sequence, idx_h, offset(out, i * table_w), workspace, factor)

    return range_kernel_of(
        attr,
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        body,
        extent="idx_w",
        block=_block(attr) if variant.get("parallel") else 1,
        workspace=workspace_of(attr.dtype),
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays do not alias: callers guarantee it
        check=check,
        **variant,
    )
