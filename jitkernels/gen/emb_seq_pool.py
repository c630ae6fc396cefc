"""Generated EMB_SEQ_POOL: ids are checked in one pass, then rows are joined eight at a time."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.loops.pooling import larger, plus
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
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
    join = larger if attr.pool == "max" else plus
    divides = attr.pool == "mean"

    def body(
        table: Any,
        ids: Any,
        out: Any,
        table_h: int,
        table_w: int,
        idx_h: int,
        idx_w: int,
        begin: int,
        end: int,
    ) -> None:
        for sequence in range(begin, end):
            first = sequence * table_w
            if idx_h == 0:
                for j in range(table_w):
                    out[first + j] = number(0)
                continue
            row = ids[sequence] * table_w
            for j in range(table_w):
                out[first + j] = table[row + j]
            i = 1
            while i + 8 <= idx_h:
                at = i * idx_w + sequence
                r0, r1 = ids[at] * table_w, ids[at + idx_w] * table_w
                r2, r3 = ids[at + 2 * idx_w] * table_w, ids[at + 3 * idx_w] * table_w
                r4, r5 = ids[at + 4 * idx_w] * table_w, ids[at + 5 * idx_w] * table_w
                r6, r7 = ids[at + 6 * idx_w] * table_w, ids[at + 7 * idx_w] * table_w
                for j in range(table_w):
                    low = join(join(table[r0 + j], table[r1 + j]), join(table[r2 + j], table[r3 + j]))
                    high = join(join(table[r4 + j], table[r5 + j]), join(table[r6 + j], table[r7 + j]))
                    out[first + j] = join(out[first + j], join(low, high))
                i += 8
            while i < idx_h:
                row = ids[i * idx_w + sequence] * table_w
                for j in range(table_w):
                    out[first + j] = join(out[first + j], table[row + j])
                i += 1
            if divides:
                divisor = number(idx_h)
                for j in range(table_w):
                    out[first + j] = out[first + j] / divisor

    signature = attr.signature()
    return LoopNest(
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("idx_w"),
        block=_block(attr) if variant.get("parallel") else 1,
        check=check,
        **variant,
    )
