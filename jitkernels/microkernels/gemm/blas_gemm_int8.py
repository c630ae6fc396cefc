"""MATMUL_INT8 around a library's product of integers: threads take rows or columns of C."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.loops.gemm import BLOCK
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset

LONGEST = 1 << 16
"""Steps along k whose sum fits into 32 bits whatever the numbers are: what is beyond may wrap or not."""
ZERO = 64
"""Bytes in front of the workspace that are 0, the offset of results that libraries read; what follows is aligned."""
DEPTH, FIRST, SECOND = 4099, 255, 127
"""Of a product whose sum no float32 is, and of which pairs do not fit into 16 bits."""


def refused(attr: MatMulInt8Attr) -> str:
    """Why a library's product of integers is none of an attr, or nothing."""
    if attr.scaled:
        return "the library gives integers, not floats with scales"
    if attr.k > LONGEST:
        return f"sums of more than {LONGEST} products may be beyond 32 bits, where it is not known to wrap"
    return ""


def is_exact(product: Callable[[int, int, int, int], object]) -> bool:
    """Whether ``product(a, b, c, k)`` of addresses, uint8 by int8, is exact on this processor.

    Without VNNI libraries add up pairs of products in 16 bits, where those of large numbers do not fit.
    """
    a, b, c = np.full(DEPTH, FIRST, np.uint8), np.full(DEPTH, SECOND, np.int8), np.zeros(1, np.int32)
    product(a.ctypes.data, b.ctypes.data, c.ctypes.data, DEPTH)
    return int(c[0]) == DEPTH * FIRST * SECOND


def prototype(address: int, *arguments: Any) -> Any:
    """A function at an address for `is_exact` to call."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(address)


def int8_nest(
    attr: MatMulInt8Attr, gemm: Any, enter: Any, leave: Any, parallel: bool, *, name: str, flips: bool
) -> LoopNest:
    """``c = a @ op(b)``, the longer side of c cut between threads.

    `gemm` takes (rows, columns, depth, a, b, b_stride, c, c_stride, zero), where zero points to an integer, and returns
    a status. flips: it wants numbers of int8 in A with 128 more, as uint8.
    """
    trans_b, by_rows = attr.trans_b, attr.m >= attr.n
    nothing = np.int32(0)

    @inlined()
    def some(a: Any, b: Any, c: Any, m: int, n: int, k: int, zero: Any, begin: int, end: int) -> Any:
        for i in range(ZERO):
            zero[i] = np.uint8(0)
        token = enter()
        b_stride = max(k if trans_b else n, 1)
        rows, columns = end - begin, n
        from_b, from_c = 0, begin * n
        if not by_rows:
            rows, columns = m, end - begin
            from_b, from_c = begin * k if trans_b else begin, begin
        status = gemm(rows, columns, k, a, offset(b, from_b), b_stride, offset(c, from_c), n, zero)
        leave(token)
        return status

    @inlined()
    def is_empty(c: Any, m: int, n: int, k: int, begin: int, end: int) -> bool:
        """Whether there is nothing to multiply; sums of nothing are written."""
        if m == 0 or n == 0:
            return True
        if k == 0:
            for i in range(begin if by_rows else 0, end if by_rows else m):
                for j in range(0 if by_rows else begin, n if by_rows else end):
                    c[i * n + j] = nothing
        return k == 0

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, room: Any, begin: int, end: int) -> Any:
        if is_empty(c, m, n, k, begin, end):
            return np.int64(0)
        left = offset(a, begin * k if by_rows else 0)
        if not flips:
            return some(left, b, c, m, n, k, room, begin, end)
        turned = offset(room, ZERO)
        for i in range((end - begin if by_rows else m) * k):
            turned[i] = left[i].view(np.uint8) ^ np.uint8(128)
        return some(turned, b, c, m, n, k, room, begin, end)

    @inlined()
    def needed(m: int, n: int, k: int, begin: int, end: int) -> int:
        return ZERO + (end - begin if by_rows else m) * k if flips else ZERO

    signature = attr.signature()
    return LoopNest(
        f"matmul_int8_{name}",
        signature.c_arguments,
        body,
        extent=signature.index("m" if by_rows else "n"),
        block=BLOCK,
        parallel=parallel,
        workspace=needed,
        workspace_dtype="uint8",
    )
