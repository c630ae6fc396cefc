"""Means and spreads of traced arrays: sums, divided by how many there are, in NumPy's order and types."""

from typing import Any

import numpy as np

from jitkernels.frontends.reductions import axes_of, dtype_name, is_given, reduced, tracer_of
from jitkernels.frontends.tables import implements
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import apply, cast_mask, cast_to, operand, stored
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node


def _count(given: Traced, axis: Any, tracer: Tracer, where: Any) -> Any:
    """How many elements a mean is of: an extent, or an array where a mask decides."""
    over = axes_of(axis, given.ndim)
    if where is not True:
        mask = fresh(tracer, construct.broadcast_to(cast_mask(tracer, operand(tracer, where)), given.extents))
        return reduced(tracer, "sum", mask, axis, "int64", None, keepdims=True)
    count = extents.product(given.extents[i] for i in over)
    if extents.same(count, 0):
        raise UnknownError("a mean of nothing")
    return count


def _mean_of(tracer: Tracer, given: Traced, axis: Any, dtype: str, keep: bool, where: Any) -> Traced:
    """A sum in a dtype, divided in it."""
    total = reduced(tracer, "sum", given, axis, dtype, None, keep, np._NoValue, where)
    count = _count(given, axis, tracer, where)
    if type(count) is Traced and not keep:
        count = fresh(tracer, construct.squeeze(count.node, axes_of(axis, given.ndim)))
    return result(tracer, _divided(tracer, total, count), given)


def _divided(tracer: Tracer, total: Traced, count: Any) -> Node:
    """A sum divided by a number of elements: in double precision, where that is too large for the sum's own."""
    own = str(total.dtype.name)
    wide = "float64" if own == "float16" else own
    return construct.cast(apply(tracer, "divide", total, fresh(tracer, cast_to(tracer, count, wide))), own)


def _working_type(dtype: Any, own: Any) -> str:
    if is_given(dtype):
        name = dtype_name(dtype)
        if np.dtype(name).kind != "f":
            raise UnknownError(f"a mean in {name}")
        return name
    return "float64" if own.kind in "iub" else str(own.name)


@implements(np.mean, methods="mean")
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    tracer = tracer_of()
    given = traced(tracer, a)
    keep = bool(keepdims) if is_given(keepdims) else False
    name = _working_type(dtype, given.dtype)
    is_half = given.dtype == np.float16 and not is_given(dtype)
    mask = where if is_given(where) else True
    found = _mean_of(tracer, given, axis, "float32" if is_half else name, keep, mask)
    if is_half:
        found = result(tracer, construct.cast(found.node, "float16"), given)
    return stored(tracer, found.node, out) if out is not None else found


@implements(np.var, methods="var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = True, mean: Any = np._NoValue, correction: Any = np._NoValue,
) -> Any:  # fmt: skip
    tracer = tracer_of()
    given = traced(tracer, a)
    keep = bool(keepdims) if is_given(keepdims) else False
    if is_given(mean) or (is_given(where) and where is not True):
        raise UnknownError("var with mean= or where=")
    if is_given(correction):
        if ddof != 0:
            raise UnknownError("var with ddof= and correction=")  # which NumPy refuses
        ddof = correction
    name = _working_type(dtype, given.dtype)
    middle = _mean_of(tracer, given, axis, name, True, True)
    apart = given - middle
    squares = apart * apart
    total = reduced(tracer, "sum", squares, axis, name, None, keep)
    count = _count(given, axis, tracer, True) - ddof
    if isinstance(count, float) or bool(count <= 0):
        raise UnknownError("var with this ddof")
    found = construct.cast(_divided(tracer, total, count), name)
    return stored(tracer, found, out) if out is not None else result(tracer, found, given)


@implements(np.std, methods="std")
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *others: Any, **keywords: Any) -> Any:
    tracer = tracer_of()
    found = var(a, axis, dtype, None, *others, **keywords)
    node = apply(tracer, "sqrt", found)
    return stored(tracer, node, out) if out is not None else result(tracer, node, found)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    keep = bool(keepdims) if is_given(keepdims) else False
    return np.subtract(np.max(a, axis=axis, keepdims=keep), np.min(a, axis=axis, keepdims=keep), out=out)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    tracer = tracer_of()
    given = traced(tracer, a)
    true = given if given.dtype == bool else given != 0
    return reduced(tracer, "sum", true, axis, "int64", None, keepdims)
