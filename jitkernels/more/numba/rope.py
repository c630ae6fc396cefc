"""ROPE by numba."""

from typing import Any

from jitkernels.attrs.rope import RopeAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, threads_along, usable


@implements(RopeAttr, can_be_used=usable, variants=threads_along("rows"))
def rope(attr: RopeAttr, parallel: bool = False) -> RangeKernel:
    interleaved = attr.interleaved

    def body(x: Any, cos: Any, sin: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        step = 2 if interleaved else 1
        apart = 1 if interleaved else sizes.half
        for row in range(begin, end):
            for p in range(sizes.positions):
                base = (row * sizes.positions + p) * 2 * sizes.half
                for j in range(sizes.half):
                    one, other = x[base + j * step], x[base + j * step + apart]
                    c, s = cos[p * sizes.half + j], sin[p * sizes.half + j]
                    y[base + j * step] = one * c - other * s
                    y[base + j * step + apart] = other * c + one * s

    return numba_kernel(attr, body, "rows", parallel=parallel, in_place=True)
