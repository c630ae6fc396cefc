"""Small GEMM by bands of rows of C, which threads split or a consumer reads: each band is a small GEMM of its own."""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import offset
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_nest
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packed_panels import matmul_arguments
from jitkernels.runtime.loading import loader

BAND = 16384
"""Approximate bytes of C per band handed to the consumer: half of a first-level cache."""
LOW = 64
"""Rows of the smallest band for a consumer; fewer rows do not pay for packing."""
SHARE = 16
"""Half of the least number of rows per thread."""


def banded_nest(attr: MatMulAttr, target: Target, *, parallel: bool = True, followed: bool = False) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)`` for an A that is not transposed; threads split the rows of C.

    A nest that is `followed` takes two more integers, see `jitkernels.microkernels.epilogue.tile_consumer`.
    """
    compact = direct_dynamic_nest(attr, target, parallel=True)
    part, max_rows, trans_b = (
        loader.range_of(compact, compact.arguments),
        BAND // element_size(attr.dtype),
        attr.trans_b,
    )

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> Any:
        return part(offset(a, begin * k), b, offset(c, begin * n), end - begin, n, k, 0, n)

    def with_row_callback(
        a: Any, b: Any, c: Any, m: int, n: int, k: int, after: int, context: int, begin: int, end: int
    ) -> Any:
        status, band = 0, end - begin
        if not trans_b:  # every band transposes B again
            band = max(max_rows // max(n, 1) // LOW, 1) * LOW
        for high in range(begin, end, band):
            low = min(high + band, end)
            status = status | part(offset(a, high * k), b, offset(c, high * n), low - high, n, k, 0, n)
            call_consumer(after, context, high, low)
        return status

    return LoopNest(
        name="matmul_banded_followed" if followed else "matmul_banded",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=with_row_callback if followed else body,
        extent=3,
        block=SHARE,
        parallel=parallel,
        vector_bytes=target.lanes(attr.dtype) * element_size(attr.dtype),
        straight=True,
    )
