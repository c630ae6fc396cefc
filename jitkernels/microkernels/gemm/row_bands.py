"""Small GEMM by bands of rows of C, which threads split or a consumer reads: each band is a small GEMM of its own."""

from typing import Any

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range
from jitkernels.core.cpu_target import Target
from jitkernels.microkernels.epilogue.tile_consumer import call_consumer
from jitkernels.microkernels.gemm.direct_dynamic import direct_dynamic_kernel
from jitkernels.microkernels.gemm.gemm_arguments import (
    NAMES,
    Consumer,
    GemmExtents,
    Operands,
    matmul_arguments,
    rows_from,
)
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.thresholds import PACKED_ROWS, SMALL_BAND_BYTES
from jitkernels.runtime.loading import loader

HALF_MIN_BAND_ROWS = 16
"""Half of the least number of rows per thread."""


def banded_kernel(attr: MatMulAttr, target: Target, *, parallel: bool = True, followed: bool = False) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)`` for an A that is not transposed; threads split the rows of C.

    A kernel that is `followed` takes two more integers, see `jitkernels.microkernels.epilogue.tile_consumer`.
    """
    compact = direct_dynamic_kernel(attr, target, parallel=True)
    compute, trans_b = loader.range_of(compact, compact.arguments), attr.trans_b
    max_rows = SMALL_BAND_BYTES // element_size(attr.dtype)

    def body(operands: Operands, extents: GemmExtents, consumer: Consumer, part: Range) -> Any:
        n, k, status, band = extents.n, extents.k, 0, part.end - part.begin
        if consumer.after is None:
            rows = rows_from(operands, extents, part.begin)
            status = compute(rows.a, rows.b, rows.c, band, n, k, 0, n)
        else:
            if not trans_b:  # every band transposes B again
                band = max(max_rows // max(n, 1) // PACKED_ROWS, 1) * PACKED_ROWS
            for high in range(part.begin, part.end, band):
                low = min(high + band, part.end)
                rows = rows_from(operands, extents, high)
                status = status | compute(rows.a, rows.b, rows.c, low - high, n, k, 0, n)
                call_consumer(consumer.after, consumer.context, high, low)
        return status

    return RangeKernel(
        name="matmul_banded_followed" if followed else "matmul_banded",
        arguments=matmul_arguments(attr.dtype, followed=followed),
        body=body,
        extent=3,
        block=HALF_MIN_BAND_ROWS,
        parallel=parallel,
        vector_bytes=target.lanes(attr.dtype) * element_size(attr.dtype),
        straight=True,
        names=NAMES,
    )
