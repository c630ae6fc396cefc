"""Generated STRIDE_SCAL, and VBROADCAST of short rows; the compiler builds the rest of the family from references."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.broadcast_ops import StrideScalAttr, VBroadcastAttr
from jitkernels.attrs.schema.registry import Variant, implementation, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.compiler.api import traced_kernel
from jitkernels.microkernels.chunking import MIN_THREAD_ELEMENTS, PIECE, grain
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.microkernels.tuning_space import widths_and_threads

LANES = 16
"""A multiple of so many elements is a multiple of whole vectors."""
MAX_FACTOR_STRIDE = 64
"""The largest stride with a table of factors, of up to LANES * MAX_FACTOR_STRIDE elements, LANES strides or more."""
MAX_BUFFERED_ROW = 16
"""Up to so many elements per row, rows are written to a buffer and copied."""


def variants(attr: StrideScalAttr) -> list[Variant]:
    return widths_and_threads(attr.n // MIN_THREAD_ELEMENTS)


@implements(StrideScalAttr, variants=variants)
def stride_scal(attr: StrideScalAttr, **variant: Any) -> RangeKernel:
    """Short strides: products with a table of factors, mostly 1. Long strides: copies, with few elements scaled."""
    one = np.dtype(attr.dtype).type(1)

    def body(a: Any, x: Any, y: Any, stride: int, workspace: Any, begin: int, end: int) -> None:
        factor = a[0]
        if stride <= MAX_FACTOR_STRIDE:
            shortest = stride * LANES
            period = shortest * max(1, min(MAX_FACTOR_STRIDE // stride, (end - begin) // (16 * shortest)))
            known = min(period, end - begin)
            for i in range(known):
                workspace[i] = one
            for i in range(-begin % stride, known, stride):
                workspace[i] = factor
            for first in range(begin, end, period):
                for i in range(min(period, end - first)):
                    y[first + i] = x[first + i] * workspace[i]
        else:
            for first in range(begin, end, PIECE):
                last = min(first + PIECE, end)
                for i in range(first, last):
                    y[i] = x[i]
                for i in range(first + -first % stride, last, stride):
                    y[i] *= factor

    return range_kernel_of(
        attr,
        f"stride_scal_{attr.dtype}",
        body,
        extent="n",
        block=MIN_THREAD_ELEMENTS,
        workspace=MAX_FACTOR_STRIDE * LANES * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,
        flags=(),
        **variant,
    )


def broadcasts(attr: VBroadcastAttr) -> Sequence[Variant]:
    return (
        widths_and_threads(attr.h // grain(attr.w, MIN_THREAD_ELEMENTS))
        if attr.w <= MAX_BUFFERED_ROW
        else traced_kernel.variants(attr)
    )


@implements(VBroadcastAttr, variants=broadcasts)
def vbroadcast(attr: VBroadcastAttr, **variant: Any) -> RangeKernel:
    """Short rows: write a page of them, and copy it. Others use the compiled reference."""
    if attr.w > MAX_BUFFERED_ROW:
        return traced_kernel.range_kernel(attr, implementation(VBroadcastAttr, "refer").function, **variant)

    def body(x: Any, y: Any, w: int, h: int, workspace: Any, begin: int, end: int) -> None:
        period = LANES * MAX_FACTOR_STRIDE // max(w, 1) * w if w <= LANES * MAX_FACTOR_STRIDE else 0
        if period == 0:
            for row in range(begin, end):
                for j in range(w):
                    y[row * w + j] = x[j]
        else:
            first, last = begin * w, end * w
            known = min(period, last - first)
            if w == 1:
                for i in range(known):
                    workspace[i] = x[0]
            else:
                for row in range(0, known, w):
                    for j in range(w):
                        workspace[row + j] = x[j]
            for start in range(first, last, period):
                for i in range(min(period, last - start)):
                    y[start + i] = workspace[i]

    signature = attr.signature()
    return RangeKernel(
        f"vbroadcast_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("h"),
        block=grain(attr.w, MIN_THREAD_ELEMENTS) if variant.get("parallel") else 1,
        workspace=MAX_FACTOR_STRIDE * LANES * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        flags=(),
        **variant,
    )
