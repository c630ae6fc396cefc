"""MAX_POOL2D, MAX_POOL2D_BACKWARD and AVG_POOL2D by numba: plain loops."""

from typing import Any

from jitkernels.attrs.pooling import AvgPool2DAttr, MaxPool2DAttr, MaxPool2DBackwardAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, maximum, numba_kernel, real, threads_along, usable


@implements(MaxPool2DAttr, can_be_used=usable, variants=threads_along("batch"))
def max_pool2d(attr: MaxPool2DAttr, parallel: bool = False) -> RangeKernel:
    lowest = float("-inf")

    def body(x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            first = pixel * sizes.channels
            for c in range(sizes.channels):
                y[first + c] = real(lowest)
            for a in range(sizes.window_height):
                h = i * sizes.stride_height + a * sizes.dilation_height - sizes.pad_top
                for b in range(sizes.window_width):
                    v = j * sizes.stride_width + b * sizes.dilation_width - sizes.pad_left
                    if h >= 0 and h < sizes.height and v >= 0 and v < sizes.width:
                        at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels
                        for c in range(sizes.channels):
                            y[first + c] = maximum(y[first + c], x[at + c])

    return numba_kernel(attr, body, "batch", parallel=parallel)


@implements(AvgPool2DAttr, can_be_used=usable, variants=threads_along("batch"))
def avg_pool2d(attr: AvgPool2DAttr, parallel: bool = False) -> RangeKernel:
    counted = int(attr.count_include_pad)

    def body(x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            top, left = i * sizes.stride_height - sizes.pad_top, j * sizes.stride_width - sizes.pad_left
            rows, columns = 0, 0
            for a in range(sizes.window_height):
                h = top + a * sizes.dilation_height
                if h >= -counted * sizes.pad_top and h < sizes.height + counted * sizes.pad_bottom:
                    rows += 1
            for b in range(sizes.window_width):
                v = left + b * sizes.dilation_width
                if v >= -counted * sizes.pad_left and v < sizes.width + counted * sizes.pad_right:
                    columns += 1
            for c in range(sizes.channels):
                total = real(0)
                for a in range(sizes.window_height):
                    h = top + a * sizes.dilation_height
                    line = real(0)
                    for b in range(sizes.window_width):
                        v = left + b * sizes.dilation_width
                        if h >= 0 and h < sizes.height and v >= 0 and v < sizes.width:
                            line += x[((image * sizes.height + h) * sizes.width + v) * sizes.channels + c]
                    total += line
                y[pixel * sizes.channels + c] = real(total / real(rows * columns))

    return numba_kernel(attr, body, "batch", parallel=parallel)


@implements(MaxPool2DBackwardAttr, can_be_used=usable, variants=threads_along("batch"))
def max_pool2d_backward(attr: MaxPool2DBackwardAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, dy: Any, dx: Any, sizes: RowArguments, begin: int, end: int) -> None:
        image_size = sizes.height * sizes.width * sizes.channels
        for k in range(begin * image_size, end * image_size):
            dx[k] = real(0)
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            for c in range(sizes.channels):
                first, most = -1, real(0)
                for a in range(sizes.window_height):
                    h = i * sizes.stride_height + a * sizes.dilation_height - sizes.pad_top
                    for b in range(sizes.window_width):
                        v = j * sizes.stride_width + b * sizes.dilation_width - sizes.pad_left
                        if h >= 0 and h < sizes.height and v >= 0 and v < sizes.width:
                            at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels + c
                            value = x[at]
                            if first < 0 or value > most or (value != value and most == most):
                                first, most = at, value
                if first >= 0:
                    dx[first] += dy[pixel * sizes.channels + c]

    return numba_kernel(attr, body, "batch", parallel=parallel)
