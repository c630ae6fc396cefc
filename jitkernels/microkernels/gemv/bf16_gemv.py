"""GEMV of bfloat16: dot products of rows, or a sum of scaled rows of a transposed matrix; each element is read once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.gemm.skinny import HALF_MIN_SKINNY_EXTENT
from jitkernels.microkernels.gemv.bf16_sums import ACCUMULATORS_IN_MEMORY, add_rows, row_product
from jitkernels.microkernels.gemv.gemv_n_streaming import ABREAST
from jitkernels.microkernels.gemv.gemv_t_streaming import SUM_BYTES, add_scaled_rows
from jitkernels.microkernels.narrow_int import round_to_bfloat16, widen_bfloat16
from jitkernels.microkernels.range_kernel_of import range_kernel_of


def gemv_kernel(attr: GEMVAttr, algorithm: str, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, x, y, m, n)``."""
    return range_kernel_of(
        attr,
        f"gemv_bfloat16_{algorithm}",
        (_across if attr.trans else _along)(attr.beta, algorithm),
        extent="m",
        block=HALF_MIN_SKINNY_EXTENT,
        parallel=parallel,
        workspace=(SUM_BYTES if algorithm == ABREAST else 4 * ACCUMULATORS_IN_MEMORY) if attr.trans else 0,
        workspace_dtype="float32",
    )


def beta_epilogue(beta: float) -> Any:
    """Make the function ``(sum, old)``: the bits of ``sum + beta * old``; a beta of 0 reads nothing."""
    keeps, scale = beta != 0, np.float32(beta)

    @inlined("contract")
    def settled(total: Any, c: Any, at: int) -> Any:
        return round_to_bfloat16(total + scale * widen_bfloat16(c[at])) if keeps else round_to_bfloat16(total)

    return settled


class GemvExtents(NamedTuple):
    """y has m elements, x has n."""

    m: int
    n: int


def _along(beta: float, algorithm: str) -> Callable[..., None]:
    of_row, finished = row_product(algorithm), beta_epilogue(beta)

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        if n == 1:
            factor = widen_bfloat16(x[0])
            for row in range(begin, end):
                y[row] = finished(widen_bfloat16(a[row]) * factor, y, row)
            return
        for row in range(begin, end):
            y[row] = finished(of_row(offset(a, row * n), x, n), y, row)

    return body


def _across(beta: float, algorithm: str) -> Callable[..., None]:
    of_row, finished = row_product(algorithm), beta_epilogue(beta)
    streaming = algorithm == ABREAST
    columns, add_four = SUM_BYTES // 4 if streaming else ACCUMULATORS_IN_MEMORY, add_scaled_rows(2, widen_bfloat16)

    def body(a: Any, x: Any, y: Any, extents: GemvExtents, workspace: Any, part: Range) -> None:
        m, n, sums = extents.m, extents.n, workspace
        if m == 1:
            y[0] = finished(of_row(a, x, n), y, 0)
            return
        for left in range(part.begin, part.end, columns):
            count = min(columns, part.end - left)
            if streaming:
                for j in range(count):
                    sums[j] = np.float32(0)
                add_four(offset(a, left), m, x, n, sums, count)
            else:
                add_rows(offset(a, left), m, x, n, sums, count)
            for j in range(count):
                y[left + j] = finished(sums[j], y, left + j)

    return body
