"""GEMV around ``cblas_?gemv``, whichever library that comes from: threads take rows of op(a), on one thread each."""

from typing import Any

import numpy as np

from jitkernels.attrs.gemv import GEMVAttr
from jitkernels.loops.gemm import BLOCK, PLAIN, ROW_MAJOR, TRANSPOSED
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import offset
from jitkernels.registry import Variant

PARALLEL_WORK = 1 << 17
"""Matrices of fewer elements are done before a second thread has helped."""


def variants(attr: GEMVAttr) -> list[Variant]:
    """Serial first; in parallel as well where there is work for two threads."""
    several = attr.m * attr.n >= PARALLEL_WORK and attr.m >= 4 * BLOCK
    return [{"parallel": parallel} for parallel in ((False, True) if several else (False,))]


def gemv_arguments(pointer: str, integer: str) -> tuple[str, ...]:
    """C types of the arguments of ``cblas_?gemv`` for a pointer type and the library's type of integers."""
    value = pointer.removesuffix("*")
    return (
        "int32",
        "int32",
        integer,
        integer,
        value,
        pointer,
        integer,
        pointer,
        integer,
        value,
        pointer,
        integer,
    )


def gemv_nest(attr: GEMVAttr, gemv: Any, enter: Any, leave: Any, parallel: bool) -> LoopNest:
    """``y = op(a) @ x + beta * y``, the rows of op(a) cut between threads."""
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
                ROW_MAJOR, PLAIN, end - begin, n, one, offset(a, begin * n), n, x, 1, beta, offset(y, begin), 1,
            )  # fmt: skip
        leave(token)

    signature = attr.signature()
    return LoopNest(
        f"gemv_{gemv.symbol}",
        signature.c_arguments,
        body,
        extent=signature.index("m"),
        block=BLOCK,
        parallel=parallel,
    )
