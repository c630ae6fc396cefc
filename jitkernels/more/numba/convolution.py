"""CONV2D by numba: plain loops, the filters innermost."""

from typing import Any

from jitkernels.attrs.convolution import Conv2DAttr
from jitkernels.attrs.matmul_epilogue import ACTIVATIONS
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import (
    RowArguments,
    ScalarFunction,
    maximum,
    numba_kernel,
    real,
    threads_along,
    usable,
)

erfc, sigmoid, tanh = map(ScalarFunction, ("erfc", "sigmoid", "tanh"))
ROOT_HALF = 0.5**0.5


@implements(Conv2DAttr, can_be_used=usable, variants=threads_along("batch"))
def conv2d(attr: Conv2DAttr, parallel: bool = False) -> RangeKernel:
    biased, has_residual = attr.biased, attr.has_residual
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
                if has_residual:
                    y[pixel * sizes.filters + f] += sizes.residual[pixel * sizes.filters + f]
            for tap in range(sizes.kernel_height * sizes.kernel_width):
                a, b = tap // sizes.kernel_width, tap % sizes.kernel_width
                h = i * sizes.stride_height + a * sizes.dilation_height - sizes.pad_top
                v = j * sizes.stride_width + b * sizes.dilation_width - sizes.pad_left
                inside = h >= 0 and h < sizes.height and v >= 0 and v < sizes.width
                at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels
                for group in range(sizes.groups):
                    first = pixel * sizes.filters + group * own
                    for c in range(sizes.group_channels):
                        value = real(0)
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
