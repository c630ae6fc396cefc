"""Reductions that leave out NaN, as fused reductions of the elements and of their count.

NumPy warns where nothing is left. Here the result is zero divided by zero there, whose floating-point flag makes the
call warn as NumPy does.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, traced
from jitkernels.compiler.capture.numpy.reductions import axes_of, guard_nonempty, is_given, tracer_of
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError


def _floats(a: Any, axis: Any, name: str, *options: Any) -> Traced | None:
    """The array, or None where its elements are no floats, which NumPy reduces as usual."""
    array = traced(tracer_of(), a)
    if any(is_given(option) for option in options) or not array.ndim or array.dtype.name == "float16":
        raise UnsupportedError(f"numpy.{name} with these options")
    if array.dtype.kind == "c":
        raise UnsupportedError(f"numpy.{name} of complex numbers")
    reduced = [array.extents[i] for i in axes_of(axis, array.ndim)]
    if any(symbolic_dims.same(extent, 0) for extent in reduced):
        raise UnsupportedError(f"numpy.{name} of an empty array")
    guard_nonempty(tracer_of(), reduced)
    return array if array.dtype.kind == "f" else None


def _kept(keepdims: Any) -> bool:
    return is_given(keepdims) and bool(keepdims)


def _count(array: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(~np.isnan(array), axis=axis, keepdims=keepdims)


def _filled(array: Any, value: float) -> Any:
    return np.where(np.isnan(array), array.dtype.type(value), array)


def _divided(total: Any, count: Any) -> Any:
    """A sum divided by a count in double precision, in the dtype of the sum."""
    return METHODS["astype"](np.divide(total, count), total.dtype, copy=False)[()]


@overrides(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = np._NoValue, *,
    where: Any = np._NoValue,
) -> Any:  # fmt: skip
    array = _floats(a, axis, "nanmean", dtype, out, where)
    if array is None:
        return np.mean(a, axis=axis, keepdims=_kept(keepdims))
    total = np.sum(_filled(array, 0.0), axis=axis, keepdims=_kept(keepdims))
    return _divided(total, _count(array, axis, _kept(keepdims)))


@overrides(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = np._NoValue, *,
    where: Any = np._NoValue, mean: Any = np._NoValue, correction: Any = np._NoValue,
) -> Any:  # fmt: skip
    array = _floats(a, axis, "nanvar", dtype, out, where, mean, correction)
    if array is None:
        return np.var(a, axis=axis, ddof=ddof, keepdims=_kept(keepdims))
    average = _divided(np.sum(_filled(array, 0.0), axis=axis, keepdims=True), _count(array, axis, True))
    deviations = np.where(np.isnan(array), array.dtype.type(0), array - average)
    total = np.sum(deviations * deviations, axis=axis, keepdims=_kept(keepdims))
    freedom = _count(array, axis, _kept(keepdims)) - ddof
    is_enough = freedom > 0
    return _divided(np.where(is_enough, total, total.dtype.type(0)), np.where(is_enough, freedom, 0))


@overrides(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *others: Any, **keywords: Any) -> Any:
    return np.sqrt(nanvar(a, axis, dtype, out, *others, **keywords))


def _extreme(name: str, plain: Any, beyond: float) -> Any:
    def reduce_(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, initial: Any = np._NoValue,
        where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        array = _floats(a, axis, name, out, initial, where)
        if array is None:
            return plain(a, axis=axis, keepdims=_kept(keepdims))
        result = plain(_filled(array, beyond), axis=axis, keepdims=_kept(keepdims))
        count = _count(array, axis, _kept(keepdims))
        return np.where(count > 0, result, _divided(result.dtype.type(0), count))[()]

    return reduce_


overrides(np.nanmin)(_extreme("nanmin", np.min, np.inf))
overrides(np.nanmax)(_extreme("nanmax", np.max, -np.inf))


def _position(name: str, plain: Any, beyond: float) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        array = _floats(a, axis, name, out)
        if array is None:
            return plain(a, axis=axis, keepdims=_kept(keepdims))
        tracer = tracer_of()
        is_nothing: Any = np.any(_count(array, axis, False) == 0)
        tracer.checks.append(is_nothing.node)  # NumPy raises ValueError
        return plain(_filled(array, beyond), axis=axis, keepdims=_kept(keepdims))

    return find


overrides(np.nanargmin)(_position("nanargmin", np.argmin, np.inf))
overrides(np.nanargmax)(_position("nanargmax", np.argmax, -np.inf))
