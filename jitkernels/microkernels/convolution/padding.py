"""Copies of an image in scratch memory, for a band of a convolution: rows between zeros, and pixels that lie apart."""

from __future__ import annotations

from typing import Any

from jitkernels.codegen.source_protocol import inlined, written_by
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.convolution.extents import Convolution, ConvolutionExtents, is_padded, needed_width
from jitkernels.microkernels.gemm.gemm_arguments import ir_function
from jitkernels.microkernels.gemm.microkernel import element_size
from jitkernels.microkernels.gemm.packing import PACK_ARGUMENTS, copy_panel
from jitkernels.microkernels.gemm.thresholds import CONFLICT_BYTES

COPIED_VECTORS = 2
"""Vectors that each iteration copies."""


def padding_slack(kind: Convolution) -> int:
    """Return how many elements behind the last row `padding_of` may overwrite."""
    return COPIED_VECTORS * kind.lanes


def _copies(kind: Convolution) -> tuple[Any, Any]:
    """Make the functions that clear, and copy, some elements of scratch memory.

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

    return clear, copy_run


def padding_of(kind: Convolution) -> Any:
    """Make the function that copies rows of an image, from one that may lie above it, between zeros."""
    clear, copy_run = _copies(kind)

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


def spreading_of(kind: Convolution) -> tuple[Any, Any, Any]:
    """Make the functions that say whether to copy the pixels of a band apart and how far, and that copies them.

    Pixels of a tile whose elements would compete for the same sets of the L1 cache lie a cache line further apart.
    """
    _, copy_run = _copies(kind)
    conflict, line = CONFLICT_BYTES // element_size(kind.dtype), CACHE_LINE_BYTES // element_size(kind.dtype)

    @inlined()
    def is_spread(e: ConvolutionExtents) -> bool:
        is_one = e.kernel_height == 1 and e.kernel_width == 1 and e.groups == 1 and e.channels > 0
        return is_one and e.stride_width * e.channels % conflict == 0 and not is_padded(e)

    @inlined()
    def spread_step(e: ConvolutionExtents) -> int:
        return (e.channels + line - 1) // line * line + line

    @inlined()
    def spread(x: Any, e: ConvolutionExtents, row: int, rows: int, scratch: Any) -> None:
        """Copy the pixels of some rows of the result, of all images."""
        at, c = 0, e.channels
        for i in range(row, row + rows):
            image = i // e.out_height
            top = (image * e.height + (i - image * e.out_height) * e.stride_height) * e.width * c
            for j in range(e.out_width):
                copy_run(x, top + j * e.stride_width * c, scratch, at, c)
                at += spread_step(e)

    return is_spread, spread_step, spread
