"""Generated STRIDE_SCAL, and VBROADCAST of short rows; the rest of the family is made from references."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels import from_reference
from jitkernels.attrs.vector_number import StrideScalAttr, VBroadcastAttr
from jitkernels.loops.pieces import BLOCK, PIECE
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implementation, implements

LANES = 16
"""A multiple of so many elements is one of whole vectors."""
MOST = 64
"""The largest stride for which factors of up to LANES * MOST elements are written down, LANES strides or more."""
SHORT = 16
"""Elements of a row up to which rows are written down and copied."""


def variants(attr: StrideScalAttr) -> list[Variant]:
    return widths_and_threads(attr.n // BLOCK)


@implements(StrideScalAttr, variants=variants)
def stride_scal(attr: StrideScalAttr, **variant: Any) -> LoopNest:
    """Short strides: products with factors of which most are 1. Long ones: copies, in which few elements are scaled."""
    one = np.dtype(attr.dtype).type(1)

    def body(a: Any, x: Any, y: Any, n: int, stride: int, workspace: Any, begin: int, end: int) -> None:
        factor = a[0]
        if stride <= MOST:
            shortest = stride * LANES
            period = shortest * max(1, min(MOST // stride, (end - begin) // (16 * shortest)))
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

    signature = attr.signature()
    return LoopNest(
        f"stride_scal_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=BLOCK,
        workspace=MOST * LANES * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,
        flags=(),
        **variant,
    )


def rows_of(attr: VBroadcastAttr) -> int:
    """How many rows a thread gets at least, a power of two so that few objects serve all shapes."""
    return 1 << max(0, (BLOCK // max(attr.w, 1)).bit_length() - 1)


def broadcasts(attr: VBroadcastAttr) -> Sequence[Variant]:
    return widths_and_threads(attr.h // rows_of(attr)) if attr.w <= SHORT else from_reference.variants(attr)


@implements(VBroadcastAttr, variants=broadcasts)
def vbroadcast(attr: VBroadcastAttr, **variant: Any) -> LoopNest:
    """Short rows: as many as a page has are written down, and copied. The reference is compiled for others."""
    if attr.w > SHORT:
        return from_reference.nest(attr, implementation(VBroadcastAttr, "refer").function, **variant)

    def body(x: Any, y: Any, w: int, h: int, workspace: Any, begin: int, end: int) -> None:
        period = LANES * MOST // max(w, 1) * w if w <= LANES * MOST else 0
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
    return LoopNest(
        f"vbroadcast_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("h"),
        block=rows_of(attr) if variant.get("parallel") else 1,
        workspace=MOST * LANES * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        flags=(),
        **variant,
    )
