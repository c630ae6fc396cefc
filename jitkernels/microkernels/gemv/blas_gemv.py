"""GEMV around ``cblas_?gemv`` of any library: threads split the rows of op(a), each in a single-threaded call."""

from typing import Any

import numpy as np

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.attrs.schema.registry import Variant
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import offset
from jitkernels.microkernels.gemm.blas_gemm import HALF_MIN_BLAS_EXTENT, NOT_TRANSPOSED, ROW_MAJOR, TRANSPOSED

MIN_PARALLEL_ELEMENTS = 1 << 17
"""A matrix of fewer elements ends before a second thread has helped."""


def variants(attr: GEMVAttr) -> list[Variant]:
    """List the variants: serial first, parallel as well where there is work for two threads."""
    several = attr.m * attr.n >= MIN_PARALLEL_ELEMENTS and attr.m >= 4 * HALF_MIN_BLAS_EXTENT
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


def gemv_kernel(attr: GEMVAttr, gemv: Any, enter: Any, leave: Any, parallel: bool) -> RangeKernel:
    """Make the range kernel ``y = op(a) @ x + beta * y``, which threads split along the rows of op(a)."""
    number = np.dtype(attr.dtype).type
    one, beta, zero = number(1), number(attr.beta), number(0)
    trans, keeps = attr.trans, attr.beta != 0

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        if end <= begin:
            return
        if n == 0:
            for i in range(begin, end):
                y[i] = beta * y[i] if keeps else zero
            return
        token = enter()
        if trans:
            gemv(
                ROW_MAJOR, TRANSPOSED, n, end - begin, one, offset(a, begin), m, x, 1, beta, offset(y, begin), 1,
            )  # fmt: skip
        else:
            gemv(
                ROW_MAJOR, NOT_TRANSPOSED, end - begin, n, one, offset(a, begin * n), n, x, 1, beta,
                offset(y, begin), 1,
            )  # fmt: skip
        leave(token)

    signature = attr.signature()
    return RangeKernel(
        f"gemv_{gemv.symbol}",
        signature.c_arguments,
        body,
        extent=signature.index("m"),
        block=HALF_MIN_BLAS_EXTENT,
        parallel=parallel,
    )
