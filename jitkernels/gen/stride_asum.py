"""Generated STRIDE_ASUM, written by hand: a traced reference may not know the stride.

Sums of parts of a row are compensated, so that long rows lose no more than short ones.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.stride_asum import StrideASumAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.chunking import grain
from jitkernels.microkernels.maths.blocked_summation import ADDS, part_length
from jitkernels.microkernels.maths.strict_arithmetic import compensated, plus, two_sum_error
from jitkernels.microkernels.tuning_space import widths_and_threads

ASUM_THREAD_ELEMENTS = 16384
"""Least number of elements per thread."""


def variants(attr: StrideASumAttr) -> list[Variant]:
    return widths_and_threads(attr.rows // grain(attr.n // attr.stride, ASUM_THREAD_ELEMENTS))


def _sum_of_lone_elements(dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)

    @inlined()
    def one_by_one(x: Any, count: int, stride: int) -> Any:
        """Four sums of strided scalar loads, which are faster than the gather instruction."""
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

    return one_by_one


@implements(StrideASumAttr, variants=variants)
def stride_asum(attr: StrideASumAttr, **variant: Any) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type
    zero, length = number(0), part_length(attr.dtype, variant.get("vector_bytes", 64))
    alone, one_by_one = 4 * ADDS, _sum_of_lone_elements(attr.dtype)

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
        else:
            for i in range(count):
                total += abs(x[4 * i])
        return total

    @inlined()
    def sum_of(x: Any, count: int, stride: int) -> Any:
        total, lost = zero, zero
        if stride <= 4:
            for first in range(0, count, length):
                part = part_of(offset(x, first * stride), min(length, count - first), stride)
                lost += two_sum_error(total, part)
                total = plus(total, part)
        else:
            for first in range(0, count, alone):
                part = one_by_one(offset(x, first * stride), min(alone, count - first), stride)
                lost += two_sum_error(total, part)
                total = plus(total, part)
        return compensated(total, lost)

    def body(x: Any, y: Any, rows: int, n: int, stride: int, begin: int, end: int) -> None:
        count = (n - 1) // stride + 1  # for any stride: no addition that may wrap
        for row in range(begin, end):
            y[row] = sum_of(offset(x, row * n), count, stride)

    signature = attr.signature()
    return RangeKernel(
        f"stride_asum_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("rows"),
        block=grain(attr.n // attr.stride, ASUM_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        flags=(),
        **variant,
    )
