"""Generated EMB_SEQ_POOL: ids are checked in one pass, then rows are joined eight at a time."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.loops.pooling import COLUMNS, ROWS, block_joining, joining, workspace_of
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 16384
"""Elements that a thread gets at least."""


def check(table: Any, ids: Any, out: Any, table_h: int, table_w: int, idx_h: int, idx_w: int) -> int:
    """How many ids lie outside the table; without a branch per id, so that LLVM vectorises it."""
    wrong = 0
    for i in range(idx_h * idx_w):
        wrong += (ids[i] < 0) | (ids[i] >= table_h)
    return wrong


def variants(attr: EmbSeqPoolAttr) -> list[Variant]:
    return widths_and_threads(attr.idx_w // _block(attr))


def _block(attr: EmbSeqPoolAttr) -> int:
    """Sequences per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.idx_h * attr.table_w, 1)).bit_length() - 1)


@implements(EmbSeqPoolAttr, variants=variants)
def emb_seq_pool(attr: EmbSeqPoolAttr, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    join, join_block = joining(attr.pool), block_joining(attr.dtype)
    columns = COLUMNS[attr.dtype]
    divides, is_max = attr.pool == "mean", attr.pool == "max"

    @inlined()
    def rows_of_eight(ids: Any, at: int, idx_w: int, table_w: int) -> Any:
        """Where the rows of eight ids one below the other begin."""
        r0, r1 = ids[at] * table_w, ids[at + idx_w] * table_w
        r2, r3 = ids[at + 2 * idx_w] * table_w, ids[at + 3 * idx_w] * table_w
        r4, r5 = ids[at + 4 * idx_w] * table_w, ids[at + 5 * idx_w] * table_w
        r6, r7 = ids[at + 6 * idx_w] * table_w, ids[at + 7 * idx_w] * table_w
        return r0, r1, r2, r3, r4, r5, r6, r7

    @inlined()
    def pool_eight(
        table: Any, j: int, r0: int, r1: int, r2: int, r3: int, r4: int, r5: int, r6: int, r7: int
    ) -> Any:
        low = join(join(table[r0 + j], table[r1 + j]), join(table[r2 + j], table[r3 + j]))
        high = join(join(table[r4 + j], table[r5 + j]), join(table[r6 + j], table[r7 + j]))
        return join(low, high)

    @inlined()
    def pool_few(
        table: Any, ids: Any, out: Any, left: int, right: int, table_w: int, idx_h: int, idx_w: int
    ) -> None:
        """Less than eight rows, and at least one, one by one."""
        row = offset(table, ids[0] * table_w)
        for j in range(left, right):
            out[j] = row[j]
        for i in range(1, idx_h):
            row = offset(table, ids[i * idx_w] * table_w)
            for j in range(left, right):
                out[j] = join(out[j], row[j])

    @inlined()
    def pool_block(
        table: Any, ids: Any, out: Any, table_w: int, idx_w: int, top: int, bottom: int, left: int, right: int
    ) -> None:
        """``ids`` begin at the sequence: its rows ``top`` to ``bottom``, columns ``left`` to ``right``."""
        rest = (bottom - top) % 8
        i = top + rest
        if rest:
            pool_few(table, offset(ids, top * idx_w), out, left, right, table_w, rest, idx_w)
        else:
            r0, r1, r2, r3, r4, r5, r6, r7 = rows_of_eight(ids, top * idx_w, idx_w, table_w)
            for j in range(left, right):
                out[j] = pool_eight(table, j, r0, r1, r2, r3, r4, r5, r6, r7)
            i = top + 8
        while i < bottom:
            r0, r1, r2, r3, r4, r5, r6, r7 = rows_of_eight(ids, i * idx_w, idx_w, table_w)
            for j in range(left, right):
                out[j] = join(out[j], pool_eight(table, j, r0, r1, r2, r3, r4, r5, r6, r7))
            i += 8

    @inlined()
    def pool_blocks(table: Any, ids: Any, out: Any, table_w: int, idx_h: int, idx_w: int, sums: Any) -> None:
        for left in range(0, table_w, columns):
            right = min(left + columns, table_w)
            for top in range(0, idx_h, ROWS):
                bottom = min(top + ROWS, idx_h)
                pool_block(table, ids, out, table_w, idx_w, top, bottom, left, right)
                join_block(out, left, right - left, sums, top == 0, bottom == idx_h)

    @inlined()
    def divide(out: Any, table_w: int, idx_h: int) -> None:
        if divides:
            divisor = number(idx_h)
            for j in range(table_w):
                out[j] = out[j] / divisor

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
        if idx_h < 8:  # what blocks need would take longer than these
            for sequence in range(begin, end):
                result, column = offset(out, sequence * table_w), offset(ids, sequence)
                if idx_h == 0:
                    for j in range(table_w):
                        result[j] = number(0)
                    continue
                pool_few(table, column, result, 0, table_w, table_w, idx_h, idx_w)
                divide(result, table_w, idx_h)
            return
        for sequence in range(begin, end):
            result, column = offset(out, sequence * table_w), offset(ids, sequence)
            if is_max or idx_h <= ROWS:
                pool_block(table, column, result, table_w, idx_w, 0, idx_h, 0, table_w)
            else:
                pool_blocks(table, column, result, table_w, idx_h, idx_w, sums)
            divide(result, table_w, idx_h)

    signature = attr.signature()
    return LoopNest(
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("idx_w"),
        block=_block(attr) if variant.get("parallel") else 1,
        workspace=workspace_of(attr.dtype),
        workspace_dtype=attr.dtype,
        reads_first=True,  # its arrays are apart: callers see to it
        check=check,
        **variant,
    )
