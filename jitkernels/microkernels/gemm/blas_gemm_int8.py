"""MATMUL_INT8 around the integer GEMM of a library: threads split the rows or columns of C."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.gemm.blas_gemm import HALF_MIN_BLAS_EXTENT
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, MatrixPart, Operands
from jitkernels.microkernels.range_kernel_of import range_kernel_of

MAX_INT32_STEPS = 1 << 16
"""Steps along k whose sum fits into 32 bits for all operands; the overflow of a longer sum is undefined."""
ZERO = 64
"""Zero bytes at the start of the workspace: the result offset that libraries read. What follows stays aligned."""
EXACTNESS_DEPTH, EXACTNESS_A, EXACTNESS_B = 4099, 255, 127
"""Operands of the exactness test: float32 cannot represent the sum, and pairs of products overflow 16 bits."""


def reason_against(attr: MatMulInt8Attr) -> str:
    """Return why the integer GEMM of a library cannot serve `attr`, or None."""
    if attr.scaled:
        return "the library returns integers, not floats with scales"
    if attr.k > MAX_INT32_STEPS:
        return f"sums of more than {MAX_INT32_STEPS} products may overflow 32 bits, where the library need not wrap"
    return ""


def is_exact(product: Callable[[int, int, int, int], object]) -> bool:
    """Return whether ``product(a, b, c, k)`` of addresses, uint8 by int8, is exact on this processor.

    Without VNNI libraries add pairs of products in 16 bits, where large products overflow.
    """
    a, b, c = (
        np.full(EXACTNESS_DEPTH, EXACTNESS_A, np.uint8),
        np.full(EXACTNESS_DEPTH, EXACTNESS_B, np.int8),
        np.zeros(1, np.int32),
    )
    product(a.ctypes.data, b.ctypes.data, c.ctypes.data, EXACTNESS_DEPTH)
    return int(c[0]) == EXACTNESS_DEPTH * EXACTNESS_A * EXACTNESS_B


def int8_nest(
    attr: MatMulInt8Attr, gemm: Any, enter: Any, leave: Any, parallel: bool, *, name: str, flips: bool
) -> RangeKernel:
    """Make the range kernel ``c = a @ op(b)``, split along the longer side of c; serial kernels share one source.

    `gemm` takes (extents, a, b, c, zero), where `zero` points to an integer, and b and c are matrices that begin at
    their data; it returns a status. flips: the library reads A as uint8, that is int8 values plus 128.
    """
    by_rows = not parallel or attr.m >= attr.n
    multiply, is_empty = _multiply(gemm, enter, leave, by_rows=by_rows, trans_b=attr.trans_b), _is_empty(by_rows)

    def body(operands: Operands, extents: GemmExtents, workspace: Any, begin: int, end: int) -> Any:
        m, k = extents.m, extents.k
        if is_empty(operands.c, m, extents.n, k, begin, end):
            return np.int64(0)
        left = offset(operands.a, begin * k if by_rows else 0)
        if flips:
            flipped = offset(workspace, ZERO)
            for i in range((end - begin if by_rows else m) * k):
                flipped[i] = left[i].view(np.uint8) ^ np.uint8(128)
            status = multiply(Operands(flipped, operands.b, operands.c), extents, workspace, begin, end)
        else:
            status = multiply(Operands(left, operands.b, operands.c), extents, workspace, begin, end)
        return status

    @inlined()
    def needed(m: int, k: int, begin: int, end: int) -> int:
        return ZERO + (end - begin if by_rows else m) * k if flips else ZERO

    return range_kernel_of(
        attr,
        f"matmul_int8_{name}",
        body,
        extent="m" if by_rows else "n",
        block=HALF_MIN_BLAS_EXTENT,
        parallel=parallel,
        workspace=needed,
        workspace_dtype="uint8",
    )


def _multiply(gemm: Any, enter: Any, leave: Any, *, by_rows: bool, trans_b: bool) -> Any:
    """Make ``(operands, extents, zero, begin, end)``: one call of the library for a range of rows or columns of c."""

    @inlined()
    def multiply(operands: Operands, extents: GemmExtents, zero: Any, begin: int, end: int) -> Any:
        m, n, k = extents.m, extents.n, extents.k
        for i in range(ZERO):
            zero[i] = np.uint8(0)
        token = enter()
        b_stride = max(k if trans_b else n, 1)
        rows, columns = end - begin, n
        from_b, from_c = 0, begin * n
        if not by_rows:
            rows, columns = m, end - begin
            from_b, from_c = begin * k if trans_b else begin, begin
        b, c = MatrixPart(offset(operands.b, from_b), 0, b_stride), MatrixPart(offset(operands.c, from_c), 0, n)
        status = gemm(GemmExtents(rows, columns, k), operands.a, b, c, zero)
        leave(token)
        return status

    return multiply


def _is_empty(by_rows: bool) -> Any:
    """Make ``(c, m, n, k, begin, end)``: whether m, n, k or the range of rows or columns is empty."""
    zero_sum = np.int32(0)

    @inlined()
    def is_empty(c: Any, m: int, n: int, k: int, begin: int, end: int) -> bool:
        """Return whether there is nothing to multiply; the sums of an empty k are written as zeros."""
        if m == 0 or n == 0:
            return True
        if k == 0:
            for i in range(begin if by_rows else 0, end if by_rows else m):
                for j in range(0 if by_rows else begin, n if by_rows else end):
                    c[i * n + j] = zero_sum
        return k == 0

    return is_empty
