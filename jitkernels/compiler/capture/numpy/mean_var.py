"""Means, variances and ranges of traced arrays, in NumPy's order of operations and dtypes."""

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
from jitkernels.compiler.capture.override_registry import overrides
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
