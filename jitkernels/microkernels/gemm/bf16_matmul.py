"""MATMUL of bfloat16: tiles of the processor's dot products of pairs, or the product of float32 made of the bits.

A C of one row or column is GEMV's, which reads the long factor where it lies.
"""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.loops.bfloat16_gemv import settling
from jitkernels.loops.bfloat16_sums import COLUMNS, WIDENED, add_rows, algorithms, row_product
from jitkernels.loops.matmul_grouped import Narrow, fits, grouped_nest, has_instruction
from jitkernels.loops.matmul_packed import packed_nest
from jitkernels.loops.matmul_plan import PARALLEL_WORK, blocking
from jitkernels.loops.narrow import widened
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant

TILES = "tiles"
TOGETHER = 256
"""Rows of C that are computed in float32 at a time."""
THIN_BLOCK = 64
"""Rows or columns that a thread gets at least, of a C of one column or row."""


def product_of(attr: MatMulAttr) -> Narrow:
    """What tiles multiply."""
    return Narrow("bfloat16", "bfloat16", "bfloat16", attr.trans_a, attr.trans_b, beta=attr.beta)


def variants(attr: MatMulAttr) -> list[Variant]:
    """What there is for a shape, the static choice first."""
    work = attr.m * attr.n * attr.k
    if 1 in (attr.m, attr.n):
        names = algorithms() if _lies_along(attr) else (WIDENED,)
    elif has_instruction("bfloat16", machine.target()) and fits(product_of(attr), attr.k):
        names = (TILES, WIDENED)
    else:
        names = (WIDENED,)
    shares = (False, True) if work >= 4 * PARALLEL_WORK and max(attr.m, attr.n) >= 128 else (False,)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]


def _lies_along(attr: MatMulAttr) -> bool:
    """Whether both factors of a C of one row or column lie along k."""
    return not attr.trans_a if attr.n == 1 else attr.trans_b


def bfloat16_nest(attr: MatMulAttr, algorithm: str, parallel: bool) -> LoopNest:
    """Make the loop nest ``(a, b, c, m, n, k)``."""
    if 1 in (attr.m, attr.n):
        return _thin(attr, algorithm, parallel)
    if algorithm == TILES:
        by_columns = attr.n >= attr.m
        signature = attr.signature()
        return grouped_nest(
            "matmul_bfloat16", signature.c_arguments, product_of(attr), by_columns=by_columns, parallel=parallel,
            extent=signature.index("n" if by_columns else "m"),
        )  # fmt: skip
    return _widened(attr, parallel)


def _thin(attr: MatMulAttr, algorithm: str, parallel: bool) -> LoopNest:
    """One row or column: the other factor's rows against it, or its rows added up; any other C element by element."""
    of_row, settled = row_product(algorithm), settling(attr.beta)
    is_column, along, trans_a, trans_b = attr.n == 1, _lies_along(attr), attr.trans_a, attr.trans_b

    @inlined("reassoc", "contract")
    def each(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        for i in range(begin if is_column else 0, end if is_column else m):
            for j in range(0 if is_column else begin, n if is_column else end):
                total = np.float32(0)
                for p in range(k):
                    left = widened(a[p * m + i if trans_a else i * k + p])
                    total += left * widened(b[j * k + p if trans_b else p * n + j])
                c[i * n + j] = settled(total, c, i * n + j)

    def dots(a: Any, b: Any, c: Any, m: int, n: int, k: int, begin: int, end: int) -> None:
        matrix, vector = (a, b) if is_column else (b, a)
        if (n if is_column else m) != 1:
            each(a, b, c, m, n, k, begin, end)
            return
        for row in range(begin, end):
            c[row] = settled(of_row(offset(matrix, row * k), vector, k), c, row)

    def sums(a: Any, b: Any, c: Any, m: int, n: int, k: int, found: Any, begin: int, end: int) -> None:
        matrix, vector = (a, b) if is_column else (b, a)
        if (n if is_column else m) != 1:
            each(a, b, c, m, n, k, begin, end)
            return
        stride = m if is_column else n
        for left in range(begin, end, COLUMNS):
            count = min(COLUMNS, end - left)
            add_rows(offset(matrix, left), stride, vector, k, found, count)
            for j in range(count):
                c[left + j] = settled(found[j], c, left + j)

    signature = attr.signature()
    return LoopNest(
        f"matmul_bfloat16_{algorithm}_{'column' if is_column else 'row'}",
        signature.c_arguments,
        dots if along else sums,
        extent=signature.index("m" if is_column else "n"),
        block=THIN_BLOCK,
        parallel=parallel,
        workspace=0 if along else 4 * COLUMNS,
        workspace_dtype="float32",
    )


def _widened(attr: MatMulAttr, parallel: bool) -> LoopNest:
    """Both factors as float32, multiplied as such, some rows of C at a time."""
    target = machine.target()
    trans_a, settled = attr.trans_a, settling(attr.beta)
    wide = packed_nest(
        "float32", target.lanes("float32"), blocking("float32", target), trans_a=trans_a, trans_b=attr.trans_b,
        beta=0.0, split="rows", parallel=False,
    )  # fmt: skip
    product = load.range_of(wide, wide.arguments)

    def needed(m: int, n: int, k: int, begin: int, end: int) -> int:
        return 4 * (k * n + TOGETHER * (k + n))

    def body(a: Any, b: Any, c: Any, m: int, n: int, k: int, workspace: Any, begin: int, end: int) -> Any:
        rows_of_a, sums = offset(workspace, k * n), offset(workspace, k * n + TOGETHER * k)
        for i in range(k * n):
            workspace[i] = widened(b[i])
        for top in range(begin, end, TOGETHER):
            rows = min(TOGETHER, end - top)
            if trans_a:
                for p in range(k):
                    for r in range(rows):
                        rows_of_a[p * rows + r] = widened(a[p * m + top + r])
            else:
                for i in range(rows * k):
                    rows_of_a[i] = widened(a[top * k + i])
            status = product(rows_of_a, workspace, sums, rows, n, k, 0, rows)
            if status != 0:
                return status
            for i in range(rows * n):
                c[top * n + i] = settled(sums[i], c, top * n + i)
        return 0

    signature = attr.signature()
    return LoopNest(
        "matmul_bfloat16_widened",
        signature.c_arguments,
        body,
        extent=signature.index("m"),
        block=TOGETHER // 2,
        parallel=parallel,
        workspace=needed,
        workspace_dtype="float32",
    )
