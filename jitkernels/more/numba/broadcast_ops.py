"""STRIDE_SCAL by numba."""

from typing import Any

from jitkernels.attrs.broadcast_ops import StrideScalAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import numba_kernel, usable


@implements(StrideScalAttr, can_be_used=usable)
def stride_scal(attr: StrideScalAttr) -> RangeKernel:
    def body(a: Any, x: Any, y: Any, stride: int, begin: int, end: int) -> None:
        factor = a[0]
        if stride == 1:
            for i in range(begin, end):
                y[i] = x[i] * factor
        else:
            for i in range(begin, end):
                y[i] = x[i]
            for i in range((begin + stride - 1) // stride * stride, end, stride):
                y[i] = y[i] * factor

    return numba_kernel(attr, body, "n")
