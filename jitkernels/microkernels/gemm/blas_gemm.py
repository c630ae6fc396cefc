"""MATMUL around ``cblas_?gemm``, whichever library that comes from: threads take rows or columns of C.

A library is called on one thread and on a part of C. That obeys every limit on threads by itself, where the
libraries' own thread pools each have rules of their own.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112
BLOCK = 32
"""Rows or columns of C that a thread gets at least, twice."""
PARALLEL_WORK = 128**3
"""Products of fewer multiply-adds are done before a second thread has helped."""


def variants(attr: Any) -> list[Variant]:
    """Serial first; in parallel as well where there is work for two threads."""
    several = attr.m * attr.n * attr.k >= PARALLEL_WORK and max(attr.m, attr.n) >= 4 * BLOCK
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


def gemm_arguments(pointer: str, integer: str) -> tuple[str, ...]:
    """C types of the arguments of ``cblas_?gemm`` for a pointer type and the library's type of integers."""
    value = pointer.removesuffix("*")
    return (
        *["int32"] * 3, *[integer] * 3, value, pointer, integer, pointer, integer, value, pointer, integer,
    )  # fmt: skip


def of_cblas(gemm: Any) -> Any:
    """A ``cblas_?gemm`` as what `gemm_nest` calls: it tells of no failure."""

    @inlined()
    def call(
        order: int, turn_a: int, turn_b: int, rows: int, columns: int, depth: int, alpha: Any, a: Any,
        a_stride: int, b: Any, b_stride: int, beta: Any, c: Any, c_stride: int,
    ) -> int:  # fmt: skip
        gemm(order, turn_a, turn_b, rows, columns, depth, alpha, a, a_stride, b, b_stride, beta, c, c_stride)
        return 0

    return call


def gemm_nest(attr: MatMulAttr, gemm: Any, enter: Any, leave: Any, parallel: bool, *, name: str) -> LoopNest:
    """``c = op(a) @ op(b) + beta * c``, the longer side of c cut between threads.

    `gemm` takes what ``cblas_?gemm`` takes and returns a status.
    """
    number = np.dtype(attr.dtype).type
    one, beta = number(1), number(attr.beta)
    trans_a, trans_b = attr.trans_a, attr.trans_b
    by_rows = attr.m >= attr.n
    turn_a, turn_b = TRANSPOSED if trans_a else PLAIN, TRANSPOSED if trans_b else PLAIN

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> Any:
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
        status = gemm(
            ROW_MAJOR, turn_a, turn_b, rows, columns, k, one, offset(a, from_a), a_stride,
            offset(b, from_b), b_stride, beta, offset(c, from_c), n,
        )  # fmt: skip
        leave(token)
        return status

    signature = attr.signature()
    return LoopNest(
        f"matmul_{name}",
        signature.c_arguments,
        body,
        extent=signature.index("m" if by_rows else "n"),
        block=BLOCK,
        parallel=parallel,
    )
