"""BATCH_NORM by numba."""

from typing import Any

from jitkernels.attrs.normalization import BatchNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, sqrt, threads_along, usable


@implements(BatchNormAttr, can_be_used=usable, variants=threads_along("rows"))
def batch_norm(attr: BatchNormAttr, parallel: bool = False) -> RangeKernel:
    def plain(x: Any, mean: Any, var: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        least = real(sizes.eps[0])
        for row in range(begin, end):
            for c in range(sizes.channels):
                middle, factor = mean[c], real(1) / sqrt(var[c] + least)
                first = (row * sizes.channels + c) * sizes.inner
                for i in range(first, first + sizes.inner):
                    y[i] = (x[i] - middle) * factor

    def affine(x: Any, mean: Any, var: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        least = real(sizes.eps[0])
        for row in range(begin, end):
            for c in range(sizes.channels):
                middle, shift = mean[c], sizes.bias[c]
                factor = real(1) / sqrt(var[c] + least) * sizes.scale[c]
                first = (row * sizes.channels + c) * sizes.inner
                for i in range(first, first + sizes.inner):
                    y[i] = (x[i] - middle) * factor + shift

    return numba_kernel(attr, affine if attr.affine else plain, "rows", parallel=parallel, in_place=True)
