"""RESIZE2D by numba: plain loops over the pixels that each result is made of."""

from typing import Any

from jitkernels.attrs.resize import CUBIC, Resize2DAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, threads_along, usable


@implements(Resize2DAttr, can_be_used=usable, variants=threads_along("batch"))
def resize2d(attr: Resize2DAttr, parallel: bool = False) -> RangeKernel:
    is_half, is_aligned = attr.coordinates == "half_pixel", attr.coordinates == "align_corners"
    is_nearest, is_linear, taps = attr.mode == "nearest", attr.mode == "linear", attr.taps
    is_floor, is_ceil, is_down = (attr.rounding == name for name in ("floor", "ceil", "round_prefer_floor"))
    lead, a = int(attr.mode == "cubic"), CUBIC

    def body(x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for pixel in range(begin * sizes.out_height * sizes.out_width, end * sizes.out_height * sizes.out_width):
            row, column = pixel // sizes.out_width, pixel % sizes.out_width
            image, line = row // sizes.out_height, row % sizes.out_height
            for c in range(sizes.channels):
                y[pixel * sizes.channels + c] = real(0)
            for tap in range(taps * taps):
                at, weight = image, 1.0
                for axis in range(2):
                    i, size, count, k = line, sizes.height, sizes.out_height, tap // taps
                    if axis == 1:
                        i, size, count, k = column, sizes.width, sizes.out_width, tap % taps
                    above, below = i * size, count
                    if is_half:
                        above, below = (2 * i + 1) * size - count, 2 * count
                    if is_aligned:
                        above, below = i * (size - 1), max(count - 1, 1)
                    first = above // below
                    t = (above - first * below) / below
                    if is_nearest:
                        if is_ceil:
                            first = -(-above // below)
                        elif is_down:
                            first = -((below - 2 * above) // (2 * below))
                        elif not is_floor:
                            first = (2 * above + below) // (2 * below)
                    elif is_linear:
                        weight = weight * (t if k == 1 else 1.0 - t)
                    else:
                        d = abs(t - (k - 1))
                        if k == 1 or k == 2:
                            weight = weight * (((a + 2.0) * d - (a + 3.0)) * d * d + 1.0)
                        else:
                            weight = weight * (((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a)
                    at = at * size + min(max(first + k - lead, 0), size - 1)
                for c in range(sizes.channels):
                    if is_nearest:
                        y[pixel * sizes.channels + c] = x[at * sizes.channels + c]
                    else:
                        y[pixel * sizes.channels + c] += real(weight) * x[at * sizes.channels + c]

    return numba_kernel(attr, body, "batch", parallel=parallel)
