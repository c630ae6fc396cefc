"""EMB_SEQ_POOL by OpenBLAS: each row looked up is added to the result by ``cblas_?axpy``."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.gen.emb_seq_pool import check
from jitkernels.loops.pieces import BLOCK, threads
from jitkernels.more.openblas.library import external, one_thread, reason_against
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements


def can_be_used(attr: EmbSeqPoolAttr) -> bool | str:
    if attr.pool == "max":
        return "a maximum is not expressible by axpy"
    return reason_against(attr.table_w) or True


def variants(attr: EmbSeqPoolAttr) -> list[Variant]:
    return threads(attr.idx_w // _block(attr))


def _block(attr: EmbSeqPoolAttr) -> int:
    """Sequences per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK // max(attr.idx_h * attr.table_w, 1)).bit_length() - 1)


@implements(EmbSeqPoolAttr, can_be_used=can_be_used, variants=variants)
def emb_seq_pool(attr: EmbSeqPoolAttr, parallel: bool = False) -> LoopNest:
    number = np.dtype(attr.dtype).type
    zero, one = number(0), number(1)
    divides = attr.pool == "mean"
    name, pointer = ("cblas_saxpy", "float*") if attr.dtype == "float32" else ("cblas_daxpy", "double*")
    axpy = external(name, "void", "int32", pointer.removesuffix("*"), pointer, "int32", pointer, "int32")

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
        one_thread()
        for sequence in range(begin, end):
            first = sequence * table_w
            # The first row is copied: added to a zero, its negative zeros would lose their sign.
            row = ids[sequence] * table_w if idx_h > 0 else 0
            for j in range(table_w):
                out[first + j] = table[row + j] if idx_h > 0 else zero
            for i in range(1, idx_h):
                row = ids[i * idx_w + sequence] * table_w
                axpy(table_w, one, offset(table, row), 1, offset(out, first), 1)
            if divides:
                for j in range(table_w):
                    out[first + j] = out[first + j] / number(idx_h)

    signature = attr.signature()
    return LoopNest(
        f"emb_seq_pool_{attr.pool}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("idx_w"),
        block=_block(attr),
        parallel=parallel,
        check=check,
    )
