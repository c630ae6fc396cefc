"""Generated MATMUL_INT8: tiles of VPDPBUSD where the processor has it, else loops that LLVM makes vectors of."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.loops.matmul_grouped import Narrow, fits, grouped_nest, has_instruction
from jitkernels.loops.matmul_plan import PARALLEL_WORK
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined
from jitkernels.registry import Variant, implements

BLOCK = 8
"""Rows that a thread gets at least, twice, of loops."""
TOGETHER = 512
"""Columns whose sums are kept at a time: they stay in the first-level cache."""


def variants(attr: MatMulInt8Attr) -> list[Variant]:
    """Tiles before loops, unless there is a single row; threads where there is work for two."""
    work = attr.m * attr.n * attr.k
    shares = (True, False) if work >= 4 * PARALLEL_WORK and max(attr.m, attr.n) >= 128 else (False,)
    tiled = has_instruction("int8", machine.target()) and fits(_product(attr), attr.k)
    names = ["tiles", "loops"] if attr.m > 1 else ["loops", "tiles"]
    return [
        {"algorithm": name, "parallel": parallel}
        for name in names
        if name == "loops" or tiled
        for parallel in shares
    ]


def _product(attr: MatMulInt8Attr) -> Narrow:
    return Narrow(
        attr.a_dtype,
        "int8",
        attr.dtype if attr.scaled else "int32",
        trans_b=attr.trans_b,
        scaled=attr.scaled,
    )


@implements(MatMulInt8Attr, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, algorithm: str = "loops", parallel: bool = False) -> LoopNest:
    signature = attr.signature()
    if algorithm == "tiles":
        by_columns = attr.n >= attr.m
        return grouped_nest(
            "matmul_int8", signature.c_arguments, _product(attr), by_columns=by_columns, parallel=parallel,
            extent=signature.index("n" if by_columns else "m"),
        )  # fmt: skip
    return LoopNest(
        "matmul_int8_loops",
        signature.c_arguments,
        _loops(attr),
        extent=signature.index("m"),
        block=BLOCK,
        parallel=parallel and attr.m >= 4 * BLOCK,
        flags=(),  # the products of scales are rounded as they are written
        workspace=4 * TOGETHER,
        workspace_dtype="int32",
    )


def _loops(attr: MatMulInt8Attr) -> Any:
    trans_b, scaled = attr.trans_b, attr.scaled
    number = np.dtype(attr.dtype).type
    zero = np.int32(0)

    @inlined()
    def sums(a: Any, b: Any, row: int, n: int, k: int, j: int, here: int, found: Any) -> None:
        """Those of some columns of a row."""
        if trans_b:
            for i in range(here):
                total = zero
                for p in range(k):
                    total += np.int32(a[row * k + p]) * np.int32(b[(j + i) * k + p])
                found[i] = total
        else:
            for i in range(here):
                found[i] = zero
            for p in range(k):
                factor = np.int32(a[row * k + p])
                for i in range(here):
                    found[i] += factor * np.int32(b[p * n + j + i])

    def plain(a: Any, b: Any, c: Any, m: int, n: int, k: int, found: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            for j in range(0, n, TOGETHER):
                here = min(TOGETHER, n - j)
                sums(a, b, row, n, k, j, here, found)
                for i in range(here):
                    c[row * n + j + i] = found[i]

    def with_scales(
        a: Any, b: Any, a_scale: Any, b_scale: Any, c: Any, m: int, n: int, k: int, found: Any, begin: int, end: int
    ) -> None:  # fmt: skip
        for row in range(begin, end):
            for j in range(0, n, TOGETHER):
                here = min(TOGETHER, n - j)
                sums(a, b, row, n, k, j, here, found)
                for i in range(here):
                    c[row * n + j + i] = number(found[i]) * (a_scale[row] * b_scale[j + i])

    return with_scales if scaled else plain
