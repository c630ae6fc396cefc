"""Rows of an image between zeros, in scratch memory: what a band of a convolution with padding reads."""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.microkernels.convolution.extents import Convolution, ConvolutionExtents, needed_width
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel

COPIED_VECTORS = 2
"""Vectors that each iteration copies."""


def padding_slack(kind: Convolution) -> int:
    """Return how many elements behind the last row `padding_of` may overwrite."""
    return COPIED_VECTORS * kind.lanes


def padding_of(kind: Convolution) -> Any:
    """Make the function that copies rows of an image, from one that may lie above it, between zeros.

    Elements are copied as panels of `copy_panel`, whose last vector reaches beyond the row; what is behind comes later.
    """
    width = COPIED_VECTORS * kind.lanes
    text = written_by(copy_panel, "convolution_copy", kind.dtype, kind.lanes, width)
    copy = ir_function("convolution_copy", kind.dtype, PACK_ARGUMENTS, text)

    @inlined()
    def clear(x: Any, scratch: Any, at: int, count: int) -> None:
        copy(x, 0, 0, scratch, at, 0, (count + width - 1) // width)

    @inlined()
    def copy_run(x: Any, source: int, scratch: Any, at: int, count: int) -> None:
        whole = count // width
        copy(x, source, width, scratch, at, width, whole)
        if whole * width < count:
            copy(x, source + whole * width, 0, scratch, at + whole * width, count - whole * width, 1)

    @inlined()
    def pad_rows(x: Any, e: ConvolutionExtents, row: int, rows: int, scratch: Any) -> None:
        wide, c = needed_width(e), e.channels
        left = min(e.pad_left, wide)
        inside = max(min(e.width, wide - left), 0)
        for i in range(rows):
            at = i * wide * c
            source = row + i
            if source < 0 or source >= e.height:
                clear(x, scratch, at, wide * c)
            else:
                clear(x, scratch, at, left * c)
                copy_run(x, source * e.width * c, scratch, at + left * c, inside * c)
                clear(x, scratch, at + (left + inside) * c, (wide - left - inside) * c)

    return pad_rows
