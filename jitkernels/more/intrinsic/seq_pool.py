"""SEQ_POOL in C with intrinsics."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.chunking import threads
from jitkernels.more.intrinsic.source import external, source, usable

REGISTER_COLUMNS = 128
"""Least number of columns per thread: as many as stay in registers."""
POOL_THREAD_ELEMENTS = 16384
"""Least number of elements of x per thread."""


def variants(attr: SeqPoolAttr) -> list[Variant]:
    return threads(min(attr.w // REGISTER_COLUMNS, attr.h * attr.w // POOL_THREAD_ELEMENTS))


@implements(SeqPoolAttr, can_be_used=usable, variants=variants)
def seq_pool(attr: SeqPoolAttr, parallel: bool = False) -> RangeKernel:
    """Make the kernel; serial and parallel share a function: another would take the C compiler over a second."""
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

    return RangeKernel(
        built.name, arguments, body, extent=signature.index("w"), block=REGISTER_COLUMNS, parallel=parallel
    )
