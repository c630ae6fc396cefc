"""CONV2D_TRANSPOSE by numba: plain loops, the filters innermost."""

from typing import Any

from jitkernels.attrs.convolution_transpose import Conv2DTransposeAttr
from jitkernels.attrs.matmul_epilogue import ACTIVATIONS
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.convolution import ROOT_HALF, erfc, sigmoid, tanh
from jitkernels.more.numba.numba_kernel import RowArguments, maximum, numba_kernel, real, threads_along, usable


@implements(Conv2DTransposeAttr, can_be_used=usable, variants=threads_along("batch"))
def conv2d_transpose(attr: Conv2DTransposeAttr, parallel: bool = False) -> RangeKernel:
    biased = attr.biased
    identity, relu, gelu, silu, is_tanh, _ = (attr.activation == name for name in ACTIVATIONS)

    def body(x: Any, w: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        own = sizes.filters // sizes.groups
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            for f in range(sizes.filters):
                if biased:
                    y[pixel * sizes.filters + f] = sizes.bias[f]
                else:
                    y[pixel * sizes.filters + f] = real(0)
            for tap in range(sizes.kernel_height * sizes.kernel_width):
                h = i + sizes.pad_top - tap // sizes.kernel_width * sizes.dilation_height
                v = j + sizes.pad_left - tap % sizes.kernel_width * sizes.dilation_width
                if h % sizes.stride_height == 0 and v % sizes.stride_width == 0:
                    h, v = h // sizes.stride_height, v // sizes.stride_width
                    inside = h >= 0 and h < sizes.height and v >= 0 and v < sizes.width
                    at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels
                    for group in range(sizes.groups):
                        first = pixel * sizes.filters + group * own
                        for c in range(sizes.group_channels):
                            value = real(0)  # times an infinite weight it is NaN
                            if inside:
                                value = x[at + group * sizes.group_channels + c]
                            weights = (tap * sizes.group_channels + c) * sizes.filters + group * own
                            for f in range(own):
                                y[first + f] += value * w[weights + f]
            for k in range(pixel * sizes.filters, (pixel + 1) * sizes.filters):
                z = y[k]
                if relu:
                    y[k] = maximum(z, real(0))
                elif gelu:
                    y[k] = real(0.5) * z * erfc(z * real(-ROOT_HALF))
                elif silu:
                    y[k] = z * sigmoid(z)
                elif is_tanh:
                    y[k] = tanh(z)
                elif not identity:
                    y[k] = sigmoid(z)

    return numba_kernel(attr, body, "batch", parallel=parallel)
