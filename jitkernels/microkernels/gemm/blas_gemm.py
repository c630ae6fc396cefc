"""MATMUL around ``cblas_?gemm`` of any library: threads split the rows or columns of C.

Each thread calls the library single-threaded on its part of C. That obeys every limit on threads, where the libraries'
own thread pools each have rules of their own.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import Variant
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, MatrixPart, Operands
from jitkernels.microkernels.range_kernel_of import range_kernel_of

ROW_MAJOR, NOT_TRANSPOSED, TRANSPOSED = 101, 111, 112
HALF_MIN_BLAS_EXTENT = 32
"""Half of the least number of rows or columns of C per thread."""
MIN_PARALLEL_MULTIPLY_ADDS = 128**3
"""A product of fewer multiply-adds ends before a second thread has helped."""


class CblasLayout(NamedTuple):
    """CBLAS's order of the matrices, and which of them are transposed."""

    order: int
    a: int
    b: int


def variants(attr: Any) -> list[Variant]:
    """List the variants: serial first, parallel as well where there is work for two threads."""
    several = attr.m * attr.n * attr.k >= MIN_PARALLEL_MULTIPLY_ADDS and max(attr.m, attr.n) >= 4 * HALF_MIN_BLAS_EXTENT
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


def adapt_cblas_gemm(gemm: Any) -> Any:
    """Wrap a ``cblas_?gemm`` for `gemm_kernel`: it reports no failure, so the status is 0."""

    @inlined()
    def call(
        layout: CblasLayout, extents: GemmExtents, alpha: Any, a: MatrixPart, b: MatrixPart, beta: Any, c: MatrixPart
    ) -> int:
        gemm(
            layout.order, layout.a, layout.b, extents.m, extents.n, extents.k, alpha, offset(a.data, a.at), a.stride,
            offset(b.data, b.at), b.stride, beta, offset(c.data, c.at), c.stride,
        )  # fmt: skip
        return 0

    return call


def gemm_kernel(attr: MatMulAttr, gemm: Any, enter: Any, leave: Any, parallel: bool, *, name: str) -> RangeKernel:
    """Make the range kernel ``c = op(a) @ op(b) + beta * c``, which threads split along the longer side of c.

    `gemm` takes those of ``cblas_?gemm`` as structs, and returns a status. Without threads nothing is split, so the
    source is the same for all sizes: callers include it in sources of their own, which serve any size.
    """
    number = np.dtype(attr.dtype).type
    one, beta = number(1), number(attr.beta)
    trans_a, trans_b = attr.trans_a, attr.trans_b
    by_rows = not parallel or attr.m >= attr.n
    turn_a, turn_b = TRANSPOSED if trans_a else NOT_TRANSPOSED, TRANSPOSED if trans_b else NOT_TRANSPOSED

    def body(operands: Operands, m: int, n: int, k: int, begin: int, end: int) -> Any:
        if m == 0 or n == 0:
            return 0
        token = enter()
        a_stride = max(m if trans_a else k, 1)
        b_stride = max(k if trans_b else n, 1)
        if by_rows:
            rows, columns = end - begin, n
            from_a, from_b, from_c = begin if trans_a else begin * k, 0, begin * n
        else:
            rows, columns = m, end - begin
            from_a, from_b, from_c = 0, begin * k if trans_b else begin, begin
        layout, extents = CblasLayout(ROW_MAJOR, turn_a, turn_b), GemmExtents(rows, columns, k)
        a, b = MatrixPart(operands.a, from_a, a_stride), MatrixPart(operands.b, from_b, b_stride)
        status = gemm(layout, extents, one, a, b, beta, MatrixPart(operands.c, from_c, n))
        leave(token)
        return status

    return range_kernel_of(
        attr, f"matmul_{name}", body, extent="m" if by_rows else "n", block=HALF_MIN_BLAS_EXTENT, parallel=parallel
    )
