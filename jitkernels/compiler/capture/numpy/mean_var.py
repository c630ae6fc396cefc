"""Means, variances and ranges of traced arrays, in NumPy's order of operations and dtypes; and without NaN.

Where NaN are left out, NumPy warns if nothing is left. Here the result is zero divided by zero there, whose
floating-point flag makes the call warn as NumPy does.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.numpy.reductions import (
    ReductionOptions,
    axes_of,
    dtype_name,
    guard_nonempty,
    is_given,
    reduced,
    tracer_of,
)
from jitkernels.compiler.capture.numpy.ufuncs import apply, cast_mask, cast_to, operand, stored, stored_or_new
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node


def _count(array: Traced, axis: Any, tracer: Tracer, where: Any) -> Any:
    """The number of elements of a mean: an extent, or an array where a mask decides."""
    over = axes_of(axis, array.ndim)
    if where is not True:
        mask = fresh(tracer, builder.broadcast_to(cast_mask(tracer, operand(tracer, where)), array.extents))
        return reduced("sum", mask, ReductionOptions(axis, "int64", keepdims=True))
    count = symbolic_dims.product(array.extents[i] for i in over)
    if symbolic_dims.same(count, 0):
        raise UnsupportedError("a mean of an empty array")
    guard_nonempty(tracer, [array.extents[i] for i in over])
    return count


def _mean_of(tracer: Tracer, array: Traced, axis: Any, dtype: str, keep: bool, where: Any) -> Traced:
    """A sum in a dtype, divided in that dtype."""
    total = reduced("sum", array, ReductionOptions(axis, dtype, keepdims=keep, where=where))
    count = _count(array, axis, tracer, where)
    if type(count) is Traced and not keep:
        count = fresh(tracer, builder.squeeze(count.node, axes_of(axis, array.ndim)))
    return result(tracer, _divided(tracer, total, count), array)


def _divided(tracer: Tracer, total: Traced, count: Any) -> Node:
    """A sum divided by a count: in double precision where the count may exceed the sum's dtype."""
    own = str(total.dtype.name)
    wide = "float64" if own == "float16" else own
    return builder.cast(apply(tracer, "divide", total, fresh(tracer, cast_to(tracer, count, wide))), own)


def _working_type(dtype: Any, own: Any) -> str:
    if is_given(dtype):
        name = dtype_name(dtype)
        if np.dtype(name).kind not in "fc" or (own.kind == "c" and np.dtype(name).kind != "c"):
            raise UnsupportedError(f"a mean in {name}")
        return name
    return "float64" if own.kind in "iub" else str(own.name)


@overrides(np.mean, methods="mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    tracer = tracer_of()
    array = traced(tracer, a)
    keep = is_given(keepdims) and bool(keepdims)
    name = _working_type(dtype, array.dtype)
    is_half = array.dtype == np.float16 and not is_given(dtype)
    mask = where if is_given(where) else True
    outcome = _mean_of(tracer, array, axis, "float32" if is_half else name, keep, mask)
    if is_half:
        outcome = result(tracer, builder.cast(outcome.node, "float16"), array)
    return stored(tracer, outcome.node, out) if out is not None else outcome


@overrides(np.var, methods="var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = np._NoValue, correction: Any = np._NoValue,
) -> Any:  # fmt: skip
    tracer = tracer_of()
    array = traced(tracer, a)
    if is_given(mean) or (is_given(where) and where is not True):
        raise UnsupportedError("var with mean= or where=")
    if is_given(correction):
        if ddof != 0:
            raise UnsupportedError("var with ddof= and correction=")  # which NumPy refuses
        ddof = correction
    name = _working_type(dtype, array.dtype)
    average = _mean_of(tracer, array, axis, name, True, True)
    deviations = array - average
    squares = deviations * deviations
    if deviations.dtype.kind == "c":
        re, im = deviations.real, deviations.imag
        squares = re * re + im * im
        name = str(squares.dtype.name)
    total = reduced("sum", squares, ReductionOptions(axis, name, keepdims=keepdims))
    count = _count(array, axis, tracer, True) - ddof
    if not isinstance(count, float) and symbolic_dims.is_loop_variant(count):
        guard_nonempty(tracer, [count])
    elif isinstance(count, float) or bool(count <= 0):
        raise UnsupportedError("var with this ddof")
    outcome = builder.cast(_divided(tracer, total, count), name)
    return stored_or_new(tracer, outcome, out, array)


@overrides(np.std, methods="std")
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *others: Any, **keywords: Any) -> Any:
    tracer = tracer_of()
    outcome = var(a, axis, dtype, None, *others, **keywords)
    node = apply(tracer, "sqrt", outcome)
    return stored_or_new(tracer, node, out, outcome)


@overrides(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    largest, smallest = (function(a, axis=axis, keepdims=keepdims) for function in (np.max, np.min))
    return np.subtract(largest, smallest, out=out)


@overrides(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    tracer = tracer_of()
    array = traced(tracer, a)
    true = array if array.dtype == bool else array != 0
    return reduced("sum", true, ReductionOptions(axis, "int64", keepdims=keepdims))


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


def _present(array: Any, axis: Any, keepdims: bool) -> Any:
    return np.sum(~np.isnan(array), axis=axis, keepdims=keepdims)


def _filled(array: Any, value: float) -> Any:
    return np.where(np.isnan(array), array.dtype.type(value), array)


def _quotient(total: Any, count: Any) -> Any:
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
    return _quotient(total, _present(array, axis, _kept(keepdims)))


@overrides(np.nanvar)
def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = np._NoValue, *,
    where: Any = np._NoValue, mean: Any = np._NoValue, correction: Any = np._NoValue,
) -> Any:  # fmt: skip
    array = _floats(a, axis, "nanvar", dtype, out, where, mean, correction)
    if array is None:
        return np.var(a, axis=axis, ddof=ddof, keepdims=_kept(keepdims))
    average = _quotient(np.sum(_filled(array, 0.0), axis=axis, keepdims=True), _present(array, axis, True))
    deviations = np.where(np.isnan(array), array.dtype.type(0), array - average)
    total = np.sum(deviations * deviations, axis=axis, keepdims=_kept(keepdims))
    freedom = _present(array, axis, _kept(keepdims)) - ddof
    is_enough = freedom > 0
    return _quotient(np.where(is_enough, total, total.dtype.type(0)), np.where(is_enough, freedom, 0))


@overrides(np.nanstd)
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *others: Any, **keywords: Any) -> Any:
    return np.sqrt(nanvar(a, axis, dtype, out, *others, **keywords))


def _extreme_of(name: str, plain: Any, beyond: float) -> Any:
    def reduce_(
        a: Any, axis: Any = None, out: Any = None, keepdims: Any = np._NoValue, initial: Any = np._NoValue,
        where: Any = np._NoValue,
    ) -> Any:  # fmt: skip
        array = _floats(a, axis, name, out, initial, where)
        if array is None:
            return plain(a, axis=axis, keepdims=_kept(keepdims))
        result = plain(_filled(array, beyond), axis=axis, keepdims=_kept(keepdims))
        count = _present(array, axis, _kept(keepdims))
        return np.where(count > 0, result, _quotient(result.dtype.type(0), count))[()]

    return reduce_


overrides(np.nanmin)(_extreme_of("nanmin", np.min, np.inf))
overrides(np.nanmax)(_extreme_of("nanmax", np.max, -np.inf))


def _position_of(name: str, plain: Any, beyond: float) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = np._NoValue) -> Any:
        array = _floats(a, axis, name, out)
        if array is None:
            return plain(a, axis=axis, keepdims=_kept(keepdims))
        tracer = tracer_of()
        is_nothing: Any = np.any(_present(array, axis, False) == 0)
        tracer.checks.append(is_nothing.node)  # NumPy raises ValueError
        return plain(_filled(array, beyond), axis=axis, keepdims=_kept(keepdims))

    return find


overrides(np.nanargmin)(_position_of("nanargmin", np.argmin, np.inf))
overrides(np.nanargmax)(_position_of("nanargmax", np.argmax, -np.inf))
