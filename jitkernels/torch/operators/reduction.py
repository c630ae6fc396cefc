"""Reductions, and running ones, along axes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.torch.array_values import axes_of, highest, like
from jitkernels.torch.aten_table import operator


def _axes(x: Any, dim: Any) -> Any:
    return axes_of(dim, x.ndim) if x.ndim else ()


@operator("sum.default", "sum.dim_IntList", promotes="tensors")
def total(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, result: Any = None) -> Any:
    return np.sum(x, axis=_axes(x, dim), keepdims=keepdim, dtype=result.dtype)


@operator("mean.default", "mean.dim", promotes="tensors")
def mean(x: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None, result: Any = None) -> Any:
    return np.mean(x, axis=_axes(x, dim), keepdims=keepdim)


@operator("prod.default", promotes="tensors")
def product(x: Any, dtype: Any = None, result: Any = None) -> Any:
    return np.prod(x, dtype=result.dtype)


@operator("prod.dim_int", promotes="tensors")
def product_along(x: Any, dim: int, keepdim: bool = False, dtype: Any = None, result: Any = None) -> Any:
    return np.prod(x, axis=_axes(x, dim), keepdims=keepdim, dtype=result.dtype)


def _moments(x: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """Variance and mean: the sum of |x - mean|^2 over the number of elements less a correction."""
    axes = _axes(x, dim)
    average = np.mean(x, axis=axes, keepdims=True)
    count = 1
    for axis in axes:
        count = count * x.shape[axis]
    centred = x - average
    powers = centred * centred
    if x.dtype.kind == "c":
        powers = centred.real * centred.real + centred.imag * centred.imag
    squares = np.sum(powers, axis=axes, keepdims=True)
    correction = 1 if correction is None else correction
    variance = squares / like(max(int(count) - correction, 0), squares)
    return (variance, average) if keepdim else (np.squeeze(variance, axes), np.squeeze(average, axes))


@operator("var.correction")
def variance(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return _moments(x, dim, correction, keepdim)[0]


@operator("var.dim")
def variance_along(x: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
    return _moments(x, dim, int(unbiased), keepdim)[0]


@operator("std.correction")
def deviation(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return np.sqrt(_moments(x, dim, correction, keepdim)[0])


@operator("var_mean.correction")
def variance_and_mean(x: Any, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Any:
    return _moments(x, dim, correction, keepdim)


@operator("amax.default", "max.default")
def maximum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.max(x, axis=_axes(x, dim), keepdims=keepdim)


@operator("amin.default", "min.default")
def minimum(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return np.min(x, axis=_axes(x, dim), keepdims=keepdim)


@operator("max.dim")
def maximum_with_index(x: Any, dim: int, keepdim: bool = False) -> Any:
    return maximum(x, dim, keepdim), _index(np.argmax, x, dim, keepdim)


@operator("min.dim")
def minimum_with_index(x: Any, dim: int, keepdim: bool = False) -> Any:
    return minimum(x, dim, keepdim), _index(np.argmin, x, dim, keepdim)


def _index(function: Any, x: Any, dim: Any, keepdim: bool) -> Any:
    if dim is None or not x.ndim:
        flat = function(np.reshape(x, (-1,)))
        return np.reshape(flat, (1,) * x.ndim) if keepdim else flat
    return function(x, axis=dim, keepdims=keepdim)


@operator("argmax.default")
def argmax(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _index(np.argmax, x, dim, keepdim)


@operator("argmin.default")
def argmin(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    return _index(np.argmin, x, dim, keepdim)


def _axes_of_truth(x: Any, dim: Any) -> Any:
    """The axes of reductions to truth values, for which no axis is none, and not all."""
    return () if isinstance(dim, Sequence) and not dim else _axes(x, dim)


@operator("any.default", "any.dim", "any.dims")
def any_true(x: Any, dim: Any = None, keepdim: bool = False, result: Any = None) -> Any:
    return np.any(x, axis=_axes_of_truth(x, dim), keepdims=keepdim).astype(result.dtype)


@operator("all.default", "all.dim", "all.dims")
def all_true(x: Any, dim: Any = None, keepdim: bool = False, result: Any = None) -> Any:
    return np.all(x, axis=_axes_of_truth(x, dim), keepdims=keepdim).astype(result.dtype)


@operator("logsumexp.default", promotes="tensors")
def logsumexp(x: Any, dim: Sequence[int], keepdim: bool = False) -> Any:
    axes = _axes(x, dim)
    most = highest(x.real if x.dtype.kind == "c" else x, axes)
    most = np.where(np.isinf(most), like(0, most), most)
    total = np.log(np.sum(np.exp(x - most), axis=axes, keepdims=True)) + most
    return total if keepdim else np.squeeze(total, axes)


@operator("cumsum.default", promotes="tensors")
def cumsum(x: Any, dim: int, dtype: Any = None, result: Any = None) -> Any:
    return np.cumsum(x, axis=dim, dtype=result.dtype) if x.ndim else x


@operator("cumprod.default", promotes="tensors")
def cumprod(x: Any, dim: int, dtype: Any = None, result: Any = None) -> Any:
    return np.cumprod(x, axis=dim, dtype=result.dtype) if x.ndim else x


@operator("linalg_vector_norm.default", promotes="tensors")
def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:  # noqa: A002
    axes, size = _axes(x, dim), np.absolute(x)
    if ord == 2:
        return np.sqrt(np.sum(size * size, axis=axes, keepdims=keepdim))
    if ord == 1:
        return np.sum(size, axis=axes, keepdims=keepdim)
    if ord == 0:
        return np.sum(x != 0, axis=axes, keepdims=keepdim, dtype=size.dtype)
    if ord in (float("inf"), float("-inf")):
        return (np.max if ord > 0 else np.min)(size, axis=axes, keepdims=keepdim)
    return np.power(np.sum(np.power(size, like(ord, size)), axis=axes, keepdims=keepdim), like(1 / ord, size))
