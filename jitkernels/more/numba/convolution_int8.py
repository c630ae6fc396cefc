"""CONV2D_INT8 by numba: plain loops, a sum for each pixel and filter."""

from typing import Any

import numpy as np

from jitkernels.attrs.convolution_int8 import Conv2DInt8Attr
from jitkernels.attrs.quantize import BYTES
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, ScalarFunction, numba_kernel, real, threads_along, usable

rint = ScalarFunction("rint")
int32, float32 = np.int32, np.float32


@implements(Conv2DInt8Attr, can_be_used=usable, variants=threads_along("batch"))
def conv2d_int8(attr: Conv2DInt8Attr, parallel: bool = False) -> RangeKernel:
    shifted, biased, scaled, y_shifted = attr.shifted, attr.biased, attr.scaled, attr.y_shifted
    relu, is_whole, is_byte = attr.activation == "relu", attr.y_dtype == "int32", attr.y_dtype in BYTES
    low, high = (int(np.iinfo(attr.y_dtype).min), int(np.iinfo(attr.y_dtype).max)) if is_byte else (0, 0)

    def body(x: Any, w: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        own = sizes.filters // sizes.groups
        x_shift, y_shift = int32(0), int32(0)
        if shifted:
            x_shift = int32(sizes.x_zero[0])
        if y_shifted:
            y_shift = int32(sizes.y_zero[0])
        least, most = float32(low - y_shift), float32(high - y_shift)
        if relu:
            least = max(least, float32(0))
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            for f in range(sizes.filters):
                total, first = 0, f // own * sizes.group_channels
                if biased:
                    total = int(sizes.bias[f])
                for tap in range(sizes.kernel_height * sizes.kernel_width):
                    a, b = tap // sizes.kernel_width, tap % sizes.kernel_width
                    h = i * sizes.stride_height + a * sizes.dilation_height - sizes.pad_top
                    v = j * sizes.stride_width + b * sizes.dilation_width - sizes.pad_left
                    if h >= 0 and h < sizes.height and v >= 0 and v < sizes.width:
                        at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels + first
                        weights = tap * sizes.group_channels * sizes.filters + f
                        for c in range(sizes.group_channels):
                            total += int((int32(x[at + c]) - x_shift) * int32(w[weights + c * sizes.filters]))
                whole, k = int32(total), pixel * sizes.filters + f
                if is_whole:
                    y[k] = max(whole, int32(0)) if relu else whole
                else:
                    value = float32(whole)
                    if scaled:
                        value = value * float32(sizes.scale[f])
                    if not is_byte:
                        y[k] = float32(0) if relu and value < 0 else value
                    else:
                        value = value if value > least else least
                        value = value if value < most else most
                        y[k] = int32(rint(real(value))) + y_shift

    return numba_kernel(attr, body, "batch", parallel=parallel)
