"""Generated SGD: row numbers are checked in one pass, then rows take their steps where they are.

Threads share columns, or rows of the parameters, of which each takes the steps in their order: the result is the same
for any number of threads, also of a row that is named several times.
"""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.sgd import SgdAttr
from jitkernels.loops.matmul_packed import is_same
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 32768
"""Elements of steps that a thread gets at least."""


def check(
    param: Any, grad: Any, rows: Any, out: Any, height: int, width: int, count: int, lr: Any
) -> int:  # fmt: skip
    """How many row numbers lie outside; without a branch for each, so that LLVM vectorises it."""
    wrong: int = 0
    for i in range(count):
        wrong += (rows[i] < 0) | (rows[i] >= height)
    return wrong


def variants(attr: SgdAttr) -> list[Variant]:
    widths = machine.target().widths
    found: list[Variant] = [
        {"vector_bytes": width, "along": "param_width", "parallel": False} for width in widths
    ]
    if attr.selected_rows_size * attr.param_width >= 4 * BLOCK_ELEMENTS:
        for along in ("param_width", "param_height"):
            if getattr(attr, along) >= 4 * _block(attr, along):
                found += [{"vector_bytes": width, "along": along, "parallel": True} for width in widths]
    return found


def _block(attr: SgdAttr, along: str) -> int:
    """Columns or rows that a thread gets at least, a power of two so that few objects serve all shapes."""
    elements = attr.selected_rows_size * attr.param_width // max(getattr(attr, along), 1)
    least = 64 if along == "param_width" else 1  # threads have lines of the caches of their own
    return max(least, int(1 << max(0, (BLOCK_ELEMENTS // max(elements, 1)).bit_length() - 1)))


@implements(SgdAttr, variants=variants)
def sgd(
    attr: SgdAttr, vector_bytes: int = 64, along: str = "param_width", parallel: bool = False
) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    by_columns = along == "param_width"

    @inlined()
    def copy(x: Any, y: Any, count: int) -> None:
        for j in range(count):
            y[j] = x[j]

    @inlined("contract")
    def step(x: Any, gradient: Any, y: Any, count: int, factor: Any) -> None:
        for j in range(count):
            y[j] = x[j] - factor * gradient[j]

    def body(
        param: Any,
        grad: Any,
        rows: Any,
        out: Any,
        height: int,
        width: int,
        count: int,
        lr: Any,
        begin: int,
        end: int,
    ) -> None:
        factor = number(lr[0])
        top, bottom, left, right = (0, height, begin, end) if by_columns else (begin, end, 0, width)
        if count == 1:
            named = rows[0]
            if is_same(param, out) == 0:
                for row in range(top, bottom):
                    if row != named:
                        at = row * width + left
                        copy(offset(param, at), offset(out, at), right - left)
            if top <= named and named < bottom:
                at = named * width + left
                step(offset(param, at), offset(grad, left), offset(out, at), right - left, factor)
            return
        if is_same(param, out) == 0:
            for row in range(top, bottom):
                at = row * width + left
                copy(offset(param, at), offset(out, at), right - left)
        for i in range(count):
            row = rows[i]
            if top <= row and row < bottom:
                own = offset(out, row * width + left)
                step(own, offset(grad, i * width + left), own, right - left, factor)

    signature = attr.signature()
    return LoopNest(
        f"sgd_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index(along),
        block=_block(attr, along) if parallel else 1,
        parallel=parallel,
        vector_bytes=vector_bytes,
        reads_first=True,  # in place param is not read, and else it is apart
        check=check,
        flags=("contract",),
    )
