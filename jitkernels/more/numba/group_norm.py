"""GROUP_NORM by numba, of single precision: sums of squares in double precision do not overflow."""

from typing import Any

import numpy as np

from jitkernels.attrs.group_norm import GroupNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen.group_norm import check
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, threads_along, usable

float64 = np.float64


def can_be_used(attr: GroupNormAttr) -> bool | str:
    return "squares of doubles overflow" if attr.dtype == "float64" else usable(attr)


@implements(GroupNormAttr, can_be_used=can_be_used, variants=threads_along("rows"))
def group_norm(attr: GroupNormAttr, parallel: bool = False) -> RangeKernel:
    def plain(x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        count = sizes.channels // sizes.groups * sizes.inner
        for group in range(begin * sizes.groups, end * sizes.groups):
            first, last = group * count, (group + 1) * count
            total, squares = float64(0), float64(0)
            for i in range(first, last):
                total += x[i]
            middle, total = total / count, float64(0)
            for i in range(first, last):
                total += x[i] - middle
            middle += total / count  # of a constant group, its elements
            for i in range(first, last):
                squares += (x[i] - middle) * (x[i] - middle)
            deviation = (squares / count + float64(real(sizes.eps[0]))) ** 0.5
            for i in range(first, last):
                y[i] = real((x[i] - middle) / deviation)

    def affine(x: Any, scale: Any, bias: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        width = sizes.channels // sizes.groups
        for group in range(begin * sizes.groups, end * sizes.groups):
            first, last = group * width * sizes.inner, (group + 1) * width * sizes.inner
            total, squares = float64(0), float64(0)
            for i in range(first, last):
                total += x[i]
            middle, total = total / (last - first), float64(0)
            for i in range(first, last):
                total += x[i] - middle
            middle += total / (last - first)  # of a constant group, its elements
            for i in range(first, last):
                squares += (x[i] - middle) * (x[i] - middle)
            deviation = (squares / (last - first) + float64(real(sizes.eps[0]))) ** 0.5
            for c in range(width):
                channel = group % sizes.groups * width + c
                for i in range(first + c * sizes.inner, first + (c + 1) * sizes.inner):
                    y[i] = real((x[i] - middle) / deviation * scale[channel] + bias[channel])

    return numba_kernel(attr, affine if attr.affine else plain, "rows", check=check, parallel=parallel, in_place=True)
