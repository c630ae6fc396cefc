"""Concatenation and stacking of traced arrays."""

import functools
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.numpy.reductions import axes_of, dtype_name, is_given, tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import atleast_1d, atleast_2d, atleast_3d, expand_dims, of_array, ravel
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, common, kind_of, operand, settled, stored
from jitkernels.compiler.capture.override_registry import overrides, serves
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number


@overrides(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Any:
    return joined(arrays, axis, out, dtype=dtype, casting=casting)


def joined(
    arrays: Any, axis: Any, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind", named: bool = False
) -> Any:
    """`numpy.concatenate`; `named`: the result has C or Fortran order, as in functions that fill a new array."""
    tracer = tracer_of()
    if type(arrays) is Traced:
        arrays = list(arrays)
    listed = [traced(tracer, array) for array in arrays]
    if not listed:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        listed, axis = [ravel(array) for array in listed], 0
    if any(array.ndim == 0 for array in listed):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    name = dtype_name(dtype) if is_given(dtype) else common_type(tracer, [operand(tracer, array) for array in listed])
    if any(not np.can_cast(array.dtype, name, casting) for array in listed):
        raise TypeError(f"Cannot cast array data to {name!r} according to the rule {casting!r}")
    along = axes_of((axis,), listed[0].ndim)[0]
    total: Number = 0
    for array in listed:
        if array.ndim != listed[0].ndim or any(
            i != along and x != y for i, (x, y) in enumerate(zip(array.extents, listed[0].extents, strict=True))
        ):
            raise ValueError("all the input array dimensions except for the concatenation axis must match exactly")
        total = total + array.extents[along]
    shape = [total if i == along else x for i, x in enumerate(listed[0].extents)]
    nodes = [builder.cast(array.node, name) for array in listed if not symbolic_dims.same(array.extents[along], 0)]
    if not nodes:
        nodes = [builder.cast(listed[0].node, name)]
    node = nodes[0] if len(nodes) == 1 else Node("concatenate", nodes, name, shape, {"axis": along, "named": named})
    if out is not None:
        return stored(tracer, node, out)
    return result(tracer, node, *listed)


def common_type(tracer: Tracer, operands: Any) -> str:
    """The dtype of an array of these operands."""
    return dtype_name(builder.promoted(map(kind_of, operands)))


@overrides(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
    listed = [of_array(array) for array in arrays]
    if not listed:
        raise ValueError("need at least one array to stack")
    if any(array.extents != listed[0].extents for array in listed):
        raise ValueError("all input arrays must have the same shape")
    along = axes_of((axis,), listed[0].ndim + 1)[0]
    return concatenate([expand_dims(array, along) for array in listed], along, out, dtype=dtype, casting=casting)


@serves("stacked")
def stacked(tracer: Tracer, values: Any, dtype: str | None = None) -> Traced:
    """A list of arrays and numbers as an array, as `numpy.array` converts it: each to a given dtype directly."""
    if dtype is not None:
        values = [stacked(tracer, value, dtype) if isinstance(value, list | tuple) else value for value in values]
    listed = [operand(tracer, value) for value in values]
    if not listed:
        return fresh(tracer, builder.broadcast_to(builder.constant(0, dtype or "float64"), (0,)))
    name = dtype or np.result_type(*(np.dtype(settled(kind_of(array))) for array in listed)).name
    nodes = [cast_to(tracer, array, dtype_name(name)) for array in listed]
    return stack([fresh(tracer, node) for node in nodes])  # type: ignore[no-any-return]


def _stacking(spread: Any, axis: int) -> Any:
    def join(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Any:
        listed = [spread(of_array(array)) for array in tup]
        along = 0 if axis == 1 and listed and listed[0].ndim == 1 else axis
        return concatenate(listed, along, dtype=dtype, casting=casting)

    return join


overrides(np.hstack)(_stacking(atleast_1d, 1))
overrides(np.vstack)(_stacking(atleast_2d, 0))
overrides(np.dstack)(_stacking(atleast_3d, 2))


@overrides(np.column_stack)
def column_stack(tup: Any) -> Any:
    return concatenate([expand_dims(array, 1) if array.ndim == 1 else array for array in map(of_array, tup)], 1)


@serves("r_")
def rows(tracer: Tracer, parts: Any) -> Any:
    """``numpy.r_`` of arrays and numbers."""
    return concatenate(_parts(tracer, parts))


@serves("c_")
def columns(tracer: Tracer, parts: Any) -> Any:
    """``numpy.c_`` of arrays and numbers."""
    return concatenate([expand_dims(array, 1) if array.ndim == 1 else array for array in _parts(tracer, parts)], -1)


def _parts(tracer: Tracer, values: Any) -> list[Any]:
    if any(isinstance(value, slice | str) for value in values):
        raise UnsupportedError("numpy.r_ with slices or options")
    listed = [operand(tracer, value) for value in values]
    name = settled(functools.reduce(common, map(kind_of, listed)))
    return [atleast_1d(fresh(tracer, cast_to(tracer, array, name))) for array in listed]
