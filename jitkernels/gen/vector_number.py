"""Generated STRIDE_SCAL; the other rows of the family are made from their references."""

from typing import Any

import numpy as np

from jitkernels.attrs.vector_number import StrideScalAttr
from jitkernels.loops.pieces import BLOCK, PIECE
from jitkernels.loops.variants import widths_and_threads
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

LANES = 16
"""A multiple of so many elements is one of whole vectors."""
MOST = 64
"""The largest stride for which factors of up to LANES * MOST elements are written down, LANES strides or more."""


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
