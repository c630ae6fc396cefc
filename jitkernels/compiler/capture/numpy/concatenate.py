"""Functions that make one array of several."""

import functools
from typing import Any

import numpy as np

from jitkernels.frontends.reductions import axes_of, dtype_name, is_given, tracer_of
from jitkernels.frontends.shaping import atleast_1d, atleast_2d, atleast_3d, expand_dims, of_array, ravel
from jitkernels.frontends.tables import implements, serves
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import cast_to, common, kind_of, operand, settled, stored
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    return joined(arrays, axis, out, dtype=dtype, casting=casting)


def joined(
    arrays: Any,
    axis: Any,
    out: Any = None,
    *,
    dtype: Any = None,
    casting: Any = "same_kind",
    named: bool = False,
) -> Any:
    """What `numpy.concatenate` gives; `named`: in C order or that of Fortran, as functions do that fill a new array."""
    tracer = tracer_of()
    if type(arrays) is Traced:
        arrays = list(arrays)
    listed = [traced(tracer, one) for one in arrays]
    if not listed:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        listed, axis = [ravel(one) for one in listed], 0
    if any(one.ndim == 0 for one in listed):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    name = (
        dtype_name(dtype)
        if is_given(dtype)
        else common_type(tracer, [operand(tracer, one) for one in listed])
    )
    if any(not np.can_cast(one.dtype, name, casting) for one in listed):
        raise TypeError(f"Cannot cast array data to {name!r} according to the rule {casting!r}")
    along = axes_of(axis, listed[0].ndim)[0]
    total: Number = 0
    for one in listed:
        if one.ndim != listed[0].ndim or any(
            i != along and not (extents.same(x, y) or bool(x == y))
            for i, (x, y) in enumerate(zip(one.extents, listed[0].extents, strict=True))
        ):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly"
            )
        total = total + one.extents[along]
    shape = [total if i == along else x for i, x in enumerate(listed[0].extents)]
    nodes = [construct.cast(one.node, name) for one in listed if not extents.same(one.extents[along], 0)]
    if not nodes:
        nodes = [construct.cast(listed[0].node, name)]
    node = (
        nodes[0]
        if len(nodes) == 1
        else Node("concatenate", nodes, name, shape, {"axis": along, "named": named})
    )
    if out is not None:
        return stored(tracer, node, out)
    return result(tracer, node, *listed)


def common_type(tracer: Tracer, operands: Any) -> str:
    """The type that NumPy gives operands that meet in one array."""
    stand = {int: 1, float: 1.0, bool: True}
    kinds = [kind_of(one) for one in operands]
    name = np.result_type(*(stand[one] if one in stand else np.dtype(one) for one in kinds)).name
    return dtype_name(name)


@implements(np.stack)
def stack(
    arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    listed = [of_array(one) for one in arrays]
    if not listed:
        raise ValueError("need at least one array to stack")
    if any(
        not extents.same_shape(one.extents, listed[0].extents) and one.extents != listed[0].extents
        for one in listed
    ):
        raise ValueError("all input arrays must have the same shape")
    along = axes_of(axis, listed[0].ndim + 1)[0]
    return concatenate([expand_dims(one, along) for one in listed], along, out, dtype=dtype, casting=casting)


@serves("stacked")
def stacked(tracer: Tracer, values: Any) -> Traced:
    """A list of arrays and numbers as `numpy.array` takes it."""
    listed = [operand(tracer, one) for one in values]
    if not listed:
        return fresh(tracer, construct.broadcast_to(construct.constant(0, "float64"), (0,)))
    name = np.result_type(*(np.dtype(settled(kind_of(one))) for one in listed)).name
    nodes = [cast_to(tracer, one, dtype_name(name)) for one in listed]
    return stack([fresh(tracer, node) for node in nodes])  # type: ignore[no-any-return]


def _stacking(spread: Any, axis: int) -> Any:
    def join(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
        listed = [spread(of_array(one)) for one in tup]
        along = 0 if axis == 1 and listed and listed[0].ndim == 1 else axis
        return concatenate(listed, along, dtype=dtype, casting=casting)

    return join


implements(np.hstack)(_stacking(atleast_1d, 1))
implements(np.vstack)(_stacking(atleast_2d, 0))
implements(np.dstack)(_stacking(atleast_3d, 2))


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    return concatenate([expand_dims(one, 1) if one.ndim == 1 else one for one in map(of_array, tup)], 1)


@serves("r_")
def rows(tracer: Tracer, parts: Any) -> Any:
    """``numpy.r_`` of arrays and numbers."""
    return concatenate(_parts(tracer, parts))


@serves("c_")
def columns(tracer: Tracer, parts: Any) -> Any:
    """``numpy.c_`` of arrays and numbers."""
    return concatenate([expand_dims(one, 1) if one.ndim == 1 else one for one in _parts(tracer, parts)], -1)


def _parts(tracer: Tracer, values: Any) -> list[Any]:
    if any(isinstance(one, slice | str) for one in values):
        raise UnknownError("numpy.r_ with slices or options")
    listed = [operand(tracer, one) for one in values]
    name = settled(functools.reduce(common, map(kind_of, listed)))
    return [atleast_1d(fresh(tracer, cast_to(tracer, one, name))) for one in listed]
