"""NumPy's reductions that are written in Python: norms, moments, averages.

Each is compiled from the NumPy expression that it stands for, once for each combination of options. The expressions
call no function that is patched: what the compiler leaves to NumPy would call its replacement again.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import _NoValue

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.api.jit import jit
from jitkernels.patching.conditions import is_plain
from jitkernels.patching.piece import Call, piece
from jitkernels.patching.sample_arrays import calls_of

ONE_AXIS = "exact arrays of float32 and float64, one axis"
ORDERS: dict[Any, str] = {None: "2", 2: "2", 1: "1", np.inf: "inf"}


def own_axis(x: AnyArray, axis: Any) -> int | None:
    """An axis of an array as a number from 0; None where it is no axis, or a tuple."""
    try:
        index = operator.index(axis)
    except TypeError:
        return None
    return index % x.ndim if -x.ndim <= index < x.ndim else None


@functools.cache
def _norm(order: str, axis: int, keepdims: bool) -> Callable[..., Any]:
    def norm(x: Any) -> Any:
        if order == "1":
            return np.abs(x).sum(axis=axis, keepdims=keepdims)
        if order == "inf":
            return np.abs(x).max(axis=axis, keepdims=keepdims)
        return np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))

    return jit(norm)


@piece(
    "numpy.linalg:norm",
    serves=f"{ONE_AXIS}, orders 1, 2 and infinity",
    calls=lambda: calls_of("numpy.linalg:norm", axis=1),
)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002
    if not is_plain(x) or axis is None or type(keepdims) is not bool or x.size == 0:
        return NotImplemented
    along = own_axis(x, axis)
    order = ORDERS.get(ord) if ord is None or type(ord) in (int, float) else None
    return NotImplemented if along is None or order is None else _norm(order, along, keepdims)(x)


@functools.cache
def _nan_moment(name: str) -> Callable[..., Any]:
    def moment(x: Any) -> Any:
        """Of each column, and the least number of elements that are there."""
        is_there = x == x
        count = is_there.sum(axis=0)
        divisor = np.maximum(count, 1).astype(x.dtype)
        mean = np.where(is_there, x, 0).sum(axis=0) / divisor
        if name == "mean":
            return mean, count.min()
        differences = np.where(is_there, x - mean, 0)
        variance = (differences * differences).sum(axis=0) / divisor
        return (np.sqrt(variance) if name == "std" else variance), count.min()

    return jit(moment)


def _nan_moment_of(name: str, a: Any, axis: Any, ddof: Any, others: tuple[Any, ...]) -> Any:
    if not is_plain(a) or a.ndim != 2 or a.size == 0 or own_axis(a, axis) != 0 or ddof != 0:
        return NotImplemented
    if any(one is not None and one is not _NoValue for one in others):
        return NotImplemented
    moment, least = _nan_moment(name)(a)
    return moment if least > 0 else NotImplemented


NAN_SERVED = "exact matrices of float32 and float64, axis 0, something in each column"


@piece("numpy:nanmean", serves=NAN_SERVED, calls=lambda: calls_of("numpy:nanmean", axis=0))
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = _NoValue, *, where: Any = _NoValue
) -> Any:
    return _nan_moment_of("mean", a, axis, 0, (dtype, out, keepdims, where))


@piece("numpy:nanvar", serves=NAN_SERVED, calls=lambda: calls_of("numpy:nanvar", axis=0))
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NoValue, *,
    where: Any = _NoValue, mean: Any = _NoValue, correction: Any = _NoValue,
) -> Any:  # fmt: skip
    return _nan_moment_of("var", a, axis, ddof, (dtype, out, keepdims, where, mean, correction))


@piece("numpy:nanstd", serves=NAN_SERVED, calls=lambda: calls_of("numpy:nanstd", axis=0))
def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = _NoValue, *,
    where: Any = _NoValue, mean: Any = _NoValue, correction: Any = _NoValue,
) -> Any:  # fmt: skip
    return _nan_moment_of("std", a, axis, ddof, (dtype, out, keepdims, where, mean, correction))


@functools.cache
def _average(axis: int) -> Callable[..., Any]:
    def average(x: Any, weights: Any) -> Any:
        total = weights.sum()
        return (x * (weights if x.ndim - 1 == axis else weights[:, np.newaxis])).sum(axis=axis) / np.where(
            total == 0, 1, total
        ), total

    return jit(average)


@piece(
    "numpy:average",
    serves="exact matrices of float32 and float64, one axis, weights of the same dtype whose sum is not 0",
    calls=lambda: (
        Call(call.case, call.function, call.arguments, {"axis": 0, "weights": np.abs(call.arguments[0][:, 0]) + 1})
        for call in calls_of("numpy:average")
    ),
)
def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = _NoValue) -> Any:
    if not is_plain(a) or a.ndim != 2 or a.size == 0 or returned is not False or keepdims is not _NoValue:
        return NotImplemented
    along = own_axis(a, axis)
    if along is None or not is_plain(weights, (a.dtype,)) or weights.shape != (a.shape[along],):
        return NotImplemented
    result, total = _average(along)(a, weights)
    return result if total != 0 else NotImplemented
