"""CONV2D_BACKWARD_WEIGHTS by numba: plain loops, the filters innermost."""

from typing import Any

from jitkernels.attrs.convolution_gradient import Conv2DBackwardWeightsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, threads_along, usable


@implements(Conv2DBackwardWeightsAttr, can_be_used=usable, variants=threads_along("filters"))
def conv2d_backward_weights(attr: Conv2DBackwardWeightsAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, dy: Any, dw: Any, sizes: RowArguments, begin: int, end: int) -> None:
        own, depth = sizes.filters // sizes.groups, sizes.group_channels
        for term in range(sizes.kernel_height * sizes.kernel_width * depth):
            for f in range(begin, end):
                dw[term * sizes.filters + f] = real(0)
        for pixel in range(sizes.batch * sizes.out_height * sizes.out_width):
            row, j = pixel // sizes.out_width, pixel % sizes.out_width
            image, i = row // sizes.out_height, row % sizes.out_height
            for tap in range(sizes.kernel_height * sizes.kernel_width):
                a, b = tap // sizes.kernel_width, tap % sizes.kernel_width
                h = i * sizes.stride_height + a * sizes.dilation_height - sizes.pad_top
                v = j * sizes.stride_width + b * sizes.dilation_width - sizes.pad_left
                inside = h >= 0 and h < sizes.height and v >= 0 and v < sizes.width
                at = ((image * sizes.height + h) * sizes.width + v) * sizes.channels
                for group in range(begin // max(own, 1), (end + own - 1) // max(own, 1)):
                    first, last = max(group * own, begin), min((group + 1) * own, end)
                    for c in range(depth):
                        value = real(0)  # times an infinite gradient it is NaN
                        if inside:
                            value = x[at + group * depth + c]
                        to = (tap * depth + c) * sizes.filters
                        for f in range(first, last):
                            dw[to + f] += value * dy[pixel * sizes.filters + f]

    return numba_kernel(attr, body, "filters", parallel=parallel)
