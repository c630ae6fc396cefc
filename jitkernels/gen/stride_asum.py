"""Generated STRIDE_ASUM, by hand: what stride there is a reference may not know while it is traced.

Sums of parts of a row are joined with what that loses, so that long rows lose no more than short ones.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.stride_asum import StrideASumAttr
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.exact import lost_in, plus, settled
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, offset
from jitkernels.registry import Variant, implements

BLOCK_ELEMENTS = 16384
"""Elements that a thread gets at least."""
SUMMED = 2048
"""Elements that are added up before they are joined to the sum."""


def variants(attr: StrideASumAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // _block(attr))


def _block(attr: StrideASumAttr) -> int:
    """Rows per block, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK_ELEMENTS // max(attr.n // attr.stride, 1)).bit_length() - 1)


@implements(StrideASumAttr, variants=variants)
def stride_asum(attr: StrideASumAttr, **variant: Any) -> LoopNest:
    number: Any = np.dtype(attr.dtype).type
    zero = number(0)

    @inlined()
    def one_by_one(x: Any, count: int, stride: int) -> Any:
        """Four sums of numbers that are loaded one by one, which is faster than the instruction that gathers them."""
        a, b, c, d = zero, zero, zero, zero
        whole = count // 4 * 4
        for i in range(0, whole, 4):
            a += abs(x[stride * i])
            b += abs(x[stride * (i + 1)])
            c += abs(x[stride * (i + 2)])
            d += abs(x[stride * (i + 3)])
        for i in range(whole, count):
            a += abs(x[stride * i])
        return (a + b) + (c + d)

    @inlined("reassoc")
    def part_of(x: Any, count: int, stride: int) -> Any:
        total = zero
        if stride == 1:
            for i in range(count):
                total += abs(x[i])
        elif stride == 2:
            for i in range(count):
                total += abs(x[2 * i])
        elif stride == 3:
            for i in range(count):
                total += abs(x[3 * i])
        elif stride == 4:
            for i in range(count):
                total += abs(x[4 * i])
        else:
            total = one_by_one(x, count, stride)
        return total

    def body(x: Any, y: Any, rows: int, n: int, stride: int, begin: int, end: int) -> None:
        count = (n - 1) // stride + 1  # of any stride: nothing is added that may wrap
        for row in range(begin, end):
            total, lost = zero, zero
            for first in range(0, count, SUMMED):
                part = part_of(offset(x, row * n + first * stride), min(SUMMED, count - first), stride)
                lost += lost_in(total, part)
                total = plus(total, part)
            y[row] = settled(total, lost)

    signature = attr.signature()
    return LoopNest(
        f"stride_asum_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=_block(attr) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
