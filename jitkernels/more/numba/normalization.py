"""BATCH_NORM by numba."""

from typing import Any

from jitkernels.attrs.normalization import BatchNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.more.numba.python_nest import python_nest, real, sqrt, threads_along, usable


@implements(BatchNormAttr, can_be_used=usable, variants=threads_along("rows"))
def batch_norm(attr: BatchNormAttr, parallel: bool = False) -> LoopNest:
    def plain(
        x: Any, mean: Any, var: Any, y: Any, rows: int, channels: int, inner: int, eps: Any, begin: int, end: int
    ) -> None:
        least = real(eps[0])
        for row in range(begin, end):
            for c in range(channels):
                middle, factor = mean[c], real(1) / sqrt(var[c] + least)
                for i in range((row * channels + c) * inner, (row * channels + c + 1) * inner):
                    y[i] = (x[i] - middle) * factor

    def affine(
        x: Any,
        mean: Any,
        var: Any,
        scale: Any,
        bias: Any,
        y: Any,
        rows: int,
        channels: int,
        inner: int,
        eps: Any,
        begin: int,
        end: int,
    ) -> None:
        least = real(eps[0])
        for row in range(begin, end):
            for c in range(channels):
                middle, shift = mean[c], bias[c]
                factor = real(1) / sqrt(var[c] + least) * scale[c]
                for i in range((row * channels + c) * inner, (row * channels + c + 1) * inner):
                    y[i] = (x[i] - middle) * factor + shift

    return python_nest(attr, affine if attr.affine else plain, "rows", parallel=parallel, in_place=True)
