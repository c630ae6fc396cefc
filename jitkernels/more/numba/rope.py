"""ROPE by numba."""

from typing import Any

from jitkernels.attrs.rope import RopeAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.more.numba.python_nest import python_nest, threads_along, usable


@implements(RopeAttr, can_be_used=usable, variants=threads_along("rows"))
def rope(attr: RopeAttr, parallel: bool = False) -> LoopNest:
    interleaved = attr.interleaved

    def body(x: Any, cos: Any, sin: Any, y: Any, rows: int, positions: int, half: int, begin: int, end: int) -> None:
        step = 2 if interleaved else 1
        apart = 1 if interleaved else half
        for row in range(begin, end):
            for p in range(positions):
                base = (row * positions + p) * 2 * half
                for j in range(half):
                    one, other = x[base + j * step], x[base + j * step + apart]
                    c, s = cos[p * half + j], sin[p * half + j]
                    y[base + j * step] = one * c - other * s
                    y[base + j * step + apart] = other * c + one * s

    return python_nest(attr, body, "rows", parallel=parallel, in_place=True)
