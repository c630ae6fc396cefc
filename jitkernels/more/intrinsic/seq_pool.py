"""SEQ_POOL in C with intrinsics."""

from typing import Any

import numpy as np

from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.loops.pieces import threads
from jitkernels.more.intrinsic.source import external, source, usable
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant, implements

BLOCK_COLUMNS = 128
"""Columns that a thread gets at least: as many as stay in registers."""
BLOCK_ELEMENTS = 16384
"""Elements of x that a thread gets at least."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    return threads(min(attr.w // BLOCK_COLUMNS, attr.h * attr.w // BLOCK_ELEMENTS))


@implements(SeqPoolAttr, can_be_used=usable, variants=variants)
def seq_pool(attr: SeqPoolAttr, parallel: bool = False) -> LoopNest:
    """Threads or none take the same function: a second one would cost the C compiler more than a second."""
    signature = attr.signature()
    arguments = signature.c_arguments
    built = source("seq_pool", "seq_pool", attr.dtype, (*arguments, "int64"), POOL=attr.pool.upper())
    columns = external(built)
    zero = np.dtype(attr.dtype).type(0)

    def body(x: Any, y: Any, h: int, w: int, begin: int, end: int) -> Any:
        if h == 0:
            for j in range(begin, end):
                y[j] = zero
            return 0
        return columns(offset(x, begin), offset(y, begin), h, w, end - begin)

    return LoopNest(
        built.name, arguments, body, extent=signature.index("w"), block=BLOCK_COLUMNS, parallel=parallel
    )
