"""The gradient of max pooling: per window, the maxima of all channels, and then the first tap that has each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.chunking import MAX_BLOCKS
from jitkernels.microkernels.convolution.pool import Axis, PoolExtents, Taps, taps_from
from jitkernels.microkernels.gemm.microkernel import element_size


class PoolWindow(NamedTuple):
    """The taps of a window inside of the image, and the element of the first one."""

    at: int
    rows: Taps
    columns: Taps


def _passes(dtype: str) -> tuple[Any, Any]:
    """Make the functions that find the maxima of a window, and that add gradients where these are first."""
    number: Any = np.dtype(dtype).type
    lowest = number(-np.inf)

    @inlined()
    def find_maxima(x: Any, e: PoolExtents, window: PoolWindow, best: Any) -> None:
        c = e.channels
        for k in range(c):
            best[k] = lowest
        for a in range(window.rows.last - window.rows.first):
            for b in range(window.columns.last - window.columns.first):
                tap = window.at + (a * e.dilation_height * e.width + b * e.dilation_width) * c
                for k in range(c):
                    value = x[tap + k]
                    best[k] = value if (value > best[k]) | (value != value) else best[k]

    @inlined()
    def add_to_first(x: Any, dx: Any, e: PoolExtents, window: PoolWindow, best: Any, rest: Any) -> None:
        """Add the gradients in `rest` at the first maximum of each channel, and clear them there."""
        c = e.channels
        for a in range(window.rows.last - window.rows.first):
            for b in range(window.columns.last - window.columns.first):
                tap = window.at + (a * e.dilation_height * e.width + b * e.dilation_width) * c
                for k in range(c):
                    value, most = x[tap + k], best[k]
                    is_most = (value == most) | ((value != value) & (most != most))
                    dx[tap + k] += rest[k] if is_most else number(0)
                    rest[k] = number(0) if is_most else rest[k]

    return find_maxima, add_to_first


def max_pool_backward_kernel(attr: Any, *, parallel: bool) -> RangeKernel:
    """Make the loop nest of MAX_POOL2D_BACKWARD for any sizes; threads split the images."""
    signature, size, (find_maxima, add_to_first) = attr.signature(), element_size(attr.dtype), _passes(attr.dtype)

    def body(x: Any, dy: Any, dx: Any, e: PoolExtents, workspace: Any, part: Range) -> None:
        c = e.channels
        best, rest = workspace, offset(workspace, c)
        down = Axis(e.height, e.window_height, e.dilation_height, 0, 0)
        right = Axis(e.width, e.window_width, e.dilation_width, 0, 0)
        for image in range(part.begin, part.end):
            for k in range(e.height * e.width * c):
                dx[image * e.height * e.width * c + k] = 0
            for i in range(e.out_height):
                top = i * e.stride_height - e.pad_top
                rows = taps_from(top, down)
                for j in range(e.out_width):
                    left = j * e.stride_width - e.pad_left
                    columns = taps_from(left, right)
                    above = image * e.height + top + rows.first * e.dilation_height
                    at = (above * e.width + left + columns.first * e.dilation_width) * c
                    find_maxima(x, e, PoolWindow(at, rows, columns), best)
                    for k in range(c):
                        rest[k] = dy[((image * e.out_height + i) * e.out_width + j) * c + k]
                    add_to_first(x, dx, e, PoolWindow(at, rows, columns), best, rest)

    def needed(channels: int) -> Any:
        return 2 * channels * size

    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("batch"),
        max_blocks=MAX_BLOCKS,
        parallel=parallel,
        workspace=needed,
        workspace_dtype=attr.dtype,
        flags=(),
        vector_bytes=cpu_target.target().vector_bytes,
        names=signature.names,
    )
