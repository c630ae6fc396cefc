"""Decompositions of NumPy functions into differentiable operations, used in differentiated functions.

Elsewhere NumPy computes these functions as a whole, which has no derivative rule; but not in loops and branches where
the shape of the result is unknown.
"""

import math
from typing import Any

import numpy as np

from jitkernels.compiler.capture.numpy.reductions import axes_of, is_given, tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import METHODS, decomposes
from jitkernels.compiler.ir.builder import UnsupportedError

SINC_TERMS = 9
"""Terms of the sinc series below 1 that reach double precision."""


def floats(value: Any) -> Any:
    """The array converted to float64. Raises UnsupportedError for complex numbers."""
    array = of_array(value)
    if array.dtype.kind == "c":
        raise UnsupportedError("this function of complex numbers")
    return METHODS["astype"](array, np.float64, copy=False)


@decomposes(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    array, axis = (np.ravel(a), -1) if axis is None else (a, axis)
    return np.take_along_axis(array, np.argsort(array, axis, kind, order, stable=stable), axis)


@decomposes(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    array, axis = (np.ravel(a), -1) if axis is None else (a, axis)
    return np.take_along_axis(array, np.argpartition(array, kth, axis, kind, order), axis)


@decomposes(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    array = of_array(a)
    parts = np.asarray(q, np.float64)
    if out is not None or method != "linear" or weights is not None or array.dtype.kind != "f":
        raise UnsupportedError("quantile with these options")
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    axes = axes_of(axis, array.ndim)
    remaining = [i for i in range(array.ndim) if i not in axes]
    rows = np.transpose(array, (*remaining, *axes)).reshape(*(array.shape[i] for i in remaining), -1)
    ordered, last = sort(rows), int(rows.shape[-1]) - 1
    results = [_between(ordered, float(fraction) * last) for fraction in parts.flat]
    results = [np.where(np.isnan(ordered[..., -1]), np.nan, fraction) for fraction in results]
    if keepdims:
        shape = tuple(1 if i in axes else extent for i, extent in enumerate(array.shape))
        results = [np.reshape(fraction, shape) for fraction in results]
    return results[0] if not parts.ndim else np.stack(results).reshape(*parts.shape, *results[0].shape)


def _between(ordered: Any, position: float) -> Any:
    """Linear interpolation between two elements of sorted rows."""
    below = math.floor(position)
    if below == position:
        return ordered[..., below]
    low, high = ordered[..., below], ordered[..., below + 1]
    return low + (high - low) * (position - below)


@decomposes(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *arguments: Any, **keywords: Any) -> Any:
    return quantile(a, np.asarray(q, np.float64) / 100, axis, *arguments, **keywords)


@decomposes(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    return quantile(a, 0.5, axis, out, keepdims=keepdims)


@decomposes(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    values, table, heights = floats(x), floats(xp), floats(fp)
    if table.ndim != 1 or heights.ndim != 1 or table.extents != heights.extents:
        raise ValueError("fp and xp are not of the same length.")
    if period is not None:
        values, table = np.mod(values, abs(period)), np.mod(table, abs(period))
        order = np.argsort(table)
        table, heights = table[order], heights[order]
        table = np.concatenate((table[-1:] - abs(period), table, table[:1] + abs(period)))
        heights = np.concatenate((heights[-1:], heights, heights[:1]))
    lowest = heights[0] if left is None else left
    highest = heights[-1] if right is None else right
    if table.shape[0] == 1:
        inside = heights[0] + 0 * values
    else:
        right_index = np.clip(np.searchsorted(table, values, side="right"), 1, table.shape[0] - 1)
        left_index = right_index - 1
        slopes = (heights[right_index] - heights[left_index]) / (table[right_index] - table[left_index])
        inside = slopes * (values - table[left_index]) + heights[left_index]
    return np.where(values < table[0], lowest, np.where(values > table[-1], highest, inside))


@decomposes(np.sinc)
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), by its series near zero: second derivatives of the quotient would be rounding errors only."""
    array = np.multiply(np.pi, of_array(x))
    is_near = np.abs(array) < 1.0
    square = np.where(is_near, array * array, 0.0)
    series: Any = 0.0
    for number in range(SINC_TERMS, -1, -1):
        series = series * square + (-1) ** number / math.factorial(2 * number + 1)
    far = np.where(is_near, 1.0, array)
    return 1.0 * np.where(is_near, series, np.sin(far) / far)  # keeps a scalar a scalar


@decomposes(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    longer: Any = of_array(a)
    shorter = of_array(v)
    if longer.ndim != 1 or shorter.ndim != 1 or mode not in ("valid", "same", "full"):
        raise UnsupportedError("correlate with these operands")
    if longer.shape[0] < shorter.shape[0]:
        return correlate(shorter, longer, mode)[::-1]
    count = shorter.shape[0]
    if mode != "valid":
        left_padding, right_padding = (count - 1, count - 1) if mode == "full" else (count // 2, count - count // 2 - 1)
        longer = np.concatenate((np.zeros_like(shorter)[:left_padding], longer, np.zeros_like(shorter)[:right_padding]))
    windows = np.lib.stride_tricks.sliding_window_view(longer, count)
    return np.sum(windows * shorter, axis=-1)


@decomposes(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    left, right = np.atleast_1d(of_array(a), of_array(v))
    longer, shorter = (right, left) if left.shape[0] < right.shape[0] else (left, right)
    return correlate(longer, shorter[::-1], mode)


@decomposes(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Requires a sufficient `minlength`: numbers from there on bail out, as do negative ones."""
    if weights is None or not is_given(minlength) or type(minlength) is int and minlength <= 0:
        raise UnsupportedError("bincount without weights and minlength=")
    result: Any = np.zeros_like(floats(weights), shape=(minlength,))
    np.add.at(result, np.where(np.less(x, 0), minlength, x), floats(weights))
    return result


@decomposes(np.kron)
def kron(a: Any, b: Any) -> Any:
    left_array, right_array = of_array(a), of_array(b)
    count = max(left_array.ndim, right_array.ndim)
    first, second = ([1] * (count - each.ndim) + list(each.shape) for each in (left_array, right_array))
    left = np.reshape(left_array, [size for each in first for size in (each, 1)])
    right = np.reshape(right_array, [size for each in second for size in (1, each)])
    return np.reshape(left * right, [x * y for x, y in zip(first, second, strict=True)])


@decomposes(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    array = of_array(a)
    if weights is None or returned or keepdims is not False:
        raise UnsupportedError("average with these options")
    heavy = of_array(weights)
    if heavy.ndim != array.ndim:
        raise UnsupportedError("average with weights of another shape")
    total = np.sum(heavy, axis=axis)
    is_nothing: Any = np.any(total == 0)
    tracer_of().checks.append(is_nothing.node)  # NumPy raises ZeroDivisionError
    return np.sum(array * heavy, axis=axis) / total


@decomposes(np.logaddexp.reduce)
def logaddexp_reduce(a: Any, axis: Any = 0, *, keepdims: bool = False) -> Any:
    array = of_array(a)
    if array.dtype.kind != "f":
        raise UnsupportedError(f"logaddexp.reduce of {array.dtype}")
    largest = np.max(array, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    total = np.log(np.sum(np.exp(array - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axes_of(axis, array.ndim))
