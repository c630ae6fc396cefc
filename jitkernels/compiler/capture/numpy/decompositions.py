"""NumPy's functions in terms of others that have derivatives: what they are where a function is differentiated.

NumPy computes these functions as a whole, and of that no derivative is known; elsewhere it does so too.
"""

import math
from typing import Any

import numpy as np

from jitkernels.frontends.reductions import axes_of, is_given, tracer_of
from jitkernels.frontends.shaping import of_array
from jitkernels.frontends.tables import METHODS, composes
from jitkernels.graph.construct import UnknownError

SINC_TERMS = 9
"""Of the series of a sine for numbers below one, without which double precision would see a difference."""


def floats(value: Any) -> Any:
    """An array of float64."""
    return METHODS["astype"](of_array(value), np.float64, copy=False)


@composes(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    given, axis = (np.ravel(a), -1) if axis is None else (a, axis)
    return np.take_along_axis(given, np.argsort(given, axis, kind, order, stable=stable), axis)


@composes(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    given, axis = (np.ravel(a), -1) if axis is None else (a, axis)
    return np.take_along_axis(given, np.argpartition(given, kth, axis, kind, order), axis)


@composes(np.quantile)
def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
    method: str = "linear", keepdims: bool = False, *, weights: Any = None,
) -> Any:  # fmt: skip
    given = of_array(a)
    parts = np.asarray(q, np.float64)
    if out is not None or method != "linear" or weights is not None or given.dtype.kind != "f":
        raise UnknownError("quantile with these options")
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    axes = axes_of(axis, given.ndim)
    kept = [i for i in range(given.ndim) if i not in axes]
    rows = np.transpose(given, (*kept, *axes)).reshape(*(given.shape[i] for i in kept), -1)
    ordered, last = sort(rows), int(rows.shape[-1]) - 1
    found = [_between(ordered, float(one) * last) for one in parts.flat]
    found = [np.where(np.isnan(ordered[..., -1]), np.nan, one) for one in found]
    if keepdims:
        shape = tuple(1 if i in axes else one for i, one in enumerate(given.shape))
        found = [np.reshape(one, shape) for one in found]
    return found[0] if not parts.ndim else np.stack(found).reshape(*parts.shape, *found[0].shape)


def _between(ordered: Any, place: float) -> Any:
    """What is between two elements of sorted rows."""
    below = math.floor(place)
    if below == place:
        return ordered[..., below]
    low, high = ordered[..., below], ordered[..., below + 1]
    return low + (high - low) * (place - below)


@composes(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *arguments: Any, **keywords: Any) -> Any:
    return quantile(a, np.asarray(q, np.float64) / 100, axis, *arguments, **keywords)


@composes(np.median)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False
) -> Any:
    return quantile(a, 0.5, axis, out, keepdims=keepdims)


@composes(np.interp)
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
        behind = np.clip(np.searchsorted(table, values, side="right"), 1, table.shape[0] - 1)
        ahead = behind - 1
        slopes = (heights[behind] - heights[ahead]) / (table[behind] - table[ahead])
        inside = slopes * (values - table[ahead]) + heights[ahead]
    return np.where(values < table[0], lowest, np.where(values > table[-1], highest, inside))


@composes(np.sinc)
def sinc(x: Any) -> Any:
    """Around zero by its series: of quotients of small numbers, second derivatives are nothing but rounding."""
    given = np.multiply(np.pi, of_array(x))
    is_near = np.abs(given) < 1.0
    square = np.where(is_near, given * given, 0.0)
    series: Any = 0.0
    for number in range(SINC_TERMS, -1, -1):
        series = series * square + (-1) ** number / math.factorial(2 * number + 1)
    far = np.where(is_near, 1.0, given)
    return 1.0 * np.where(is_near, series, np.sin(far) / far)  # a number of a number


@composes(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    longer: Any = of_array(a)
    shorter = of_array(v)
    if longer.ndim != 1 or shorter.ndim != 1 or mode not in ("valid", "same", "full"):
        raise UnknownError("correlate with these operands")
    if longer.shape[0] < shorter.shape[0]:
        return correlate(shorter, longer, mode)[::-1]
    count = shorter.shape[0]
    if mode != "valid":
        ahead, behind = (count - 1, count - 1) if mode == "full" else (count // 2, count - count // 2 - 1)
        longer = np.concatenate((np.zeros_like(shorter)[:ahead], longer, np.zeros_like(shorter)[:behind]))
    windows = np.lib.stride_tricks.sliding_window_view(longer, count)
    return np.sum(windows * shorter, axis=-1)


@composes(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    one, other = np.atleast_1d(of_array(a), of_array(v))
    longer, shorter = (other, one) if one.shape[0] < other.shape[0] else (one, other)
    return correlate(longer, shorter[::-1], mode)


@composes(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """Expected `minlength` to be enough: numbers from there on are refused, as those below zero are."""
    if weights is None or not is_given(minlength) or type(minlength) is int and minlength <= 0:
        raise UnknownError("bincount without weights and minlength=")
    found: Any = np.zeros_like(floats(weights), shape=(minlength,))
    np.add.at(found, np.where(np.less(x, 0), minlength, x), floats(weights))
    return found


@composes(np.kron)
def kron(a: Any, b: Any) -> Any:
    one, other = of_array(a), of_array(b)
    count = max(one.ndim, other.ndim)
    first, second = ([1] * (count - each.ndim) + list(each.shape) for each in (one, other))
    left = np.reshape(one, [size for each in first for size in (each, 1)])
    right = np.reshape(other, [size for each in second for size in (1, each)])
    return np.reshape(left * right, [x * y for x, y in zip(first, second, strict=True)])


@composes(np.average)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    given = of_array(a)
    if weights is None or returned or keepdims is not False:
        raise UnknownError("average with these options")
    heavy = of_array(weights)
    if heavy.ndim != given.ndim:
        raise UnknownError("average with weights of another shape")
    total = np.sum(heavy, axis=axis)
    is_nothing: Any = np.any(total == 0)
    tracer_of().checks.append(is_nothing.node)  # of which NumPy raises ZeroDivisionError
    return np.sum(given * heavy, axis=axis) / total


@composes(np.nanmean)
def nanmean(a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return np.nansum(a, axis=axis, keepdims=keepdims) / np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)


@composes(np.logaddexp.reduce)
def logaddexp_reduce(a: Any, axis: Any = 0, *, keepdims: bool = False) -> Any:
    given = of_array(a)
    if given.dtype.kind != "f":
        raise UnknownError(f"logaddexp.reduce of {given.dtype}")
    largest = np.max(given, axis=axis, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    total = np.log(np.sum(np.exp(given - shift), axis=axis, keepdims=True)) + shift
    return total if keepdims else np.squeeze(total, axes_of(axis, given.ndim))
