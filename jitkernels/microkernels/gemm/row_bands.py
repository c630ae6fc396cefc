"""Small matrix products whose rows are shared out or handed on: each band of rows of C is a small product by itself."""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.followed import call_after
from jitkernels.loops.matmul_compact import compact_nest
from jitkernels.loops.matmul_packed import matmul_arguments
from jitkernels.loops.tile import element_size
from jitkernels.machine import Target
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset

BAND = 16384
"""Bytes of C, about, that are handed to what follows at a time: half of a first-level cache."""
LOW = 64
"""Rows of the least band that is handed on; fewer are too few to be packed."""
SHARE = 16
"""Rows that a thread gets at least, twice."""


def banded_nest(
    attr: MatMulAttr, target: Target, *, parallel: bool = True, followed: bool = False
) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)`` for an A that is not transposed; threads share out the rows of C.

    One that is `followed` takes two more integers, see `jitkernels.loops.followed`.
    """
    compact = compact_nest(attr, target, parallel=True)
    part, most, trans_b = (
        load.range_of(compact, compact.arguments),
        BAND // element_size(attr.dtype),
        attr.trans_b,
    )

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> Any:
        return part(offset(a, begin * k), b, offset(c, begin * n), end - begin, n, k, 0, n)

    def handing_on(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, begin: int, end: int
    ) -> Any:
        status, band = 0, end - begin
        if not trans_b:  # which is turned round for each band
            band = max(most // max(n, 1) // LOW, 1) * LOW
        for high in range(begin, end, band):
            low = min(high + band, end)
            status = status | part(offset(a, high * k), b, offset(c, high * n), low - high, n, k, 0, n)
            call_after(after, context, high, low)
        return status

    return LoopNest(
        name="matmul_banded_followed" if followed else "matmul_banded",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=handing_on if followed else body,
        extent=3,
        block=SHARE,
        parallel=parallel,
        vector_bytes=target.lanes(attr.dtype) * element_size(attr.dtype),
        straight=True,
    )
