"""Selection, clipping, rounding, norms, and queries about arrays (shape, dtype, realness)."""

import functools
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.numpy import binary_search
from jitkernels.compiler.capture.numpy.numpy_callouts import call_with_shape_of
from jitkernels.compiler.capture.numpy.reductions import ReductionOptions, axes_of, is_given, reduced, tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import copied, of_array
from jitkernels.compiler.capture.numpy.ufuncs import (
    apply,
    cast_mask,
    cast_to,
    common,
    kind_of,
    operand,
    settled,
    stored,
    stored_or_new,
)
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES, overrides
from jitkernels.compiler.capture.symint import SymInt, as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node


@overrides(np.where)
def where(condition: Any, *values: Any) -> Any:
    if not values:
        return SERVICES["nonzero"](condition)
    if len(values) != 2 or any(value is None for value in values):
        raise UnsupportedError("numpy.where without two values")
    x, y = values
    tracer = tracer_of()
    mask = operand(tracer, condition)
    kind = kind_of(mask)
    if kind not in (bool, "bool"):
        mask = fresh(tracer, apply(tracer, "not_equal", mask, 0))
    x_operand, y_operand = operand(tracer, x), operand(tracer, y)
    name = settled(common(kind_of(x_operand), kind_of(y_operand)))
    nodes = [cast_to(tracer, mask, "bool"), cast_to(tracer, x_operand, name), cast_to(tracer, y_operand, name)]
    shape = builder.broadcast_shapes([node.shape for node in nodes])
    created = fresh(tracer, Node("where", nodes, name, shape))
    operands = [value for value in (mask, x_operand, y_operand) if type(value) is Traced]
    created.view.storage.is_c = result(tracer, created.node, *operands).view.storage.is_c
    return created


@overrides(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("list of cases must be same length as list of conditions")
    tracer = tracer_of()
    choices = [operand(tracer, choice_value) for choice_value in (*choicelist, default)]
    name = settled(functools.reduce(common, [kind_of(choice) for choice in choices]))
    result: Any = fresh(tracer, cast_to(tracer, choices[-1], name))
    for mask, choice in zip(reversed(list(condlist)), reversed(choices[:-1]), strict=True):
        node = cast_mask(tracer, operand(tracer, mask))
        nodes = (node, cast_to(tracer, choice, name), result.node)
        result = fresh(tracer, Node("where", nodes, name, builder.broadcast_shapes([n.shape for n in nodes])))
    return result


@overrides(np.clip)
def clip(
    a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *, min: Any = np._NoValue,  # noqa: A002
    max: Any = np._NoValue, **keywords: Any,  # noqa: A002
) -> Any:  # fmt: skip
    if keywords:
        raise UnsupportedError("clip with options of a universal function")
    bounds_given = [value is not np._NoValue for value in (a_min, a_max, min, max)]
    if bounds_given[0] != bounds_given[1] or (bounds_given[0] and any(bounds_given[2:])):
        raise UnsupportedError("clip with only one of a_min and a_max, or with bounds given twice")
    low = a_min if is_given(a_min) else min if is_given(min) else None
    high = a_max if is_given(a_max) else max if is_given(max) else None
    tracer = tracer_of()
    array = traced(tracer, a) if type(a) is not Traced else a
    if low is None and high is None:
        outcome: Any = copied(array)
    else:
        bounds = [operand(tracer, value) for value in (low, high) if value is not None]
        name = settled(functools.reduce(common, [kind_of(bound) for bound in (array, *bounds)]))
        outcome = fresh(tracer, cast_to(tracer, array, name))
        if low is not None:
            # The bound comes first: of equal operands, such as zeros of different signs, the second is the result.
            bound = fresh(tracer, cast_to(tracer, operand(tracer, low), name))
            outcome = fresh(tracer, apply(tracer, "maximum", bound, outcome))
        if high is not None:
            bound = fresh(tracer, cast_to(tracer, operand(tracer, high), name))
            outcome = fresh(tracer, apply(tracer, "minimum", bound, outcome))
        outcome = result(tracer, outcome.node, array)
    return stored(tracer, outcome.node, out) if out is not None else outcome


@overrides(methods="clip")
def clip_method(a: Any, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:  # noqa: A002
    return clip(a, min, max, out, **keywords)


@overrides(np.round, np.around, methods="round")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    tracer = tracer_of()
    array = traced(tracer, a)
    if type(decimals) is not int:
        raise UnsupportedError("round with decimals that are no concrete int")
    if array.dtype.kind == "f":
        node = array.node
        if decimals == 0:
            node = builder.elementwise("rint", node)
        else:
            factor = builder.constant(10.0 ** abs(decimals), array.dtype.name)
            first, second = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
            node = builder.elementwise("rint", builder.elementwise(first, node, factor))
            node = builder.elementwise(second, node, factor)
    elif array.dtype.kind in "iu" and decimals >= 0:
        node = array.node
    else:
        raise UnsupportedError("round of bools, or of ints to tens")
    return stored_or_new(tracer, node, out, array)


@overrides(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    array = of_array(x)
    if array.dtype.kind != "f" or not copy or type(nan) not in (float, int):
        raise UnsupportedError("nan_to_num with these arguments")
    limits = np.finfo(array.dtype)
    outcome: Any = np.where(np.isnan(array), array.dtype.type(nan), array)
    outcome = np.where(array == np.inf, array.dtype.type(limits.max if posinf is None else posinf), outcome)
    outcome = np.where(array == -np.inf, array.dtype.type(limits.min if neginf is None else neginf), outcome)
    return outcome if array.ndim else result(array.tracer, outcome.node)


@overrides(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    tracer = tracer_of()
    if type(dst) is not Traced:
        raise UnsupportedError("copyto to an object that is no array of the trace")
    value = operand(tracer, src)
    kind = kind_of(value)
    is_python = kind in (int, float, bool)
    node = _number(tracer, value, dst.node.dtype) if is_python else traced(tracer, value).node
    stored(tracer, node, dst, where, casting, np.copyto)


def _number(tracer: Tracer, value: Any, dtype: str) -> Node:
    if type(value) is float and np.dtype(dtype).kind != "f":
        raise TypeError("Cannot cast scalar according to the rule 'same_kind'")
    return cast_to(tracer, value, dtype)


overrides(np.shape)(lambda a: of_array(a).shape)
overrides(np.ndim)(lambda a: of_array(a).ndim)


@overrides(np.size)
def size(a: Any, axis: Any = None) -> Any:
    array = of_array(a)
    if axis is None:
        return array.size
    over = axes_of(axis, array.ndim)
    return as_symint(array.tracer, symbolic_dims.product(array.extents[i] for i in over))


@overrides(np.array_equal)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal, as a Python bool."""
    first, other = of_array(a1), of_array(a2)
    if first.ndim != other.ndim or first.extents != other.extents:
        return False
    equal: Any = first == other
    if equal_nan:
        equal = equal | ((first != first) & (other != other))
    return as_number(first.tracer, of_array(np.all(equal)).node, bool)


@overrides(np.allclose)
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are close, as a Python bool."""
    close: Any = of_array(np.all(np.isclose(a, b, rtol, atol, equal_nan)))
    return as_number(close.tracer, close.node, bool)


@overrides(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    if type(x) is not Traced:
        raise UnsupportedError("whether a list is complex")
    return bool(x.dtype.kind == "c")


overrides(np.isrealobj)(lambda x: not iscomplexobj(x))
overrides(np.real)(lambda val: val if isinstance(val, int | float) else of_array(val).real)
overrides(np.imag)(lambda val: 0 if isinstance(val, int) else of_array(val).imag)


@overrides(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    tracer = tracer_of()
    operands: list[Any] = []
    for value in arrays_and_dtypes:
        if isinstance(value, np.dtype | type | str):
            operands.append(value)
            continue
        kind = kind_of(operand(tracer, value))
        operands.append(builder.WEAK_EXAMPLES[kind] if kind in builder.WEAK_EXAMPLES else np.dtype(kind))
    return np.result_type(*operands)


def _sum_without_nan(kind: str, nothing: float) -> Any:
    def sum_(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **others: Any) -> Any:
        if any(is_given(other_value) for other_value in others.values()):
            raise UnsupportedError(f"nan{kind} with these options")
        tracer = tracer_of()
        array = traced(tracer, a)
        if array.dtype.kind == "f":
            array = result(tracer, where(np.isnan(array), array.dtype.type(nothing), array).node, array)
        return reduced(kind, array, ReductionOptions(axis, dtype, out, keepdims))

    return sum_


overrides(np.nansum)(_sum_without_nan("sum", 0))
overrides(np.nanprod)(_sum_without_nan("prod", 1))


@overrides(np.searchsorted, methods="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        raise UnsupportedError("searchsorted with sorter=")
    table, values = of_array(a), of_array(v)
    if table.ndim != 1:
        raise ValueError("object too deep for desired array")
    if side in ("left", "right") and "c" not in table.dtype.kind + values.dtype.kind:
        if not values.ndim:
            return binary_search.position(table, values, side)
        if not table.tracer.differentiates:
            return binary_search.positions(table, values, side)
    call = functools.partial(np.searchsorted, side=side)
    return call_with_shape_of(table.tracer, call, "searchsorted", "int64", values, table, values)


@overrides(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    values, edges = of_array(x), of_array(bins)
    if edges.ndim != 1 or "c" in values.dtype.kind + edges.dtype.kind or type(right) is not bool:
        raise UnsupportedError("digitize with these bins")
    increases: Any = np.all(edges[1:] >= edges[:-1])
    edges.tracer.checks.append(builder.elementwise("logical_not", increases.node))  # they may decrease
    return np.searchsorted(edges, values, side="left" if right else "right")


@overrides(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if any(type(operand) not in (type(None), int, float) for operand in (left, right, period)):
        raise UnsupportedError("interp with these options")
    values, table, heights = of_array(x), of_array(xp), of_array(fp)
    if table.ndim != 1 or heights.ndim != 1 or table.extents != heights.extents:
        raise ValueError("fp and xp are not of the same length.")
    call = functools.partial(np.interp, left=left, right=right, period=period)
    return call_with_shape_of(values.tracer, call, "interp", "float64", values, values, table, heights)


def is_traced_order(order: Any) -> bool:
    """Whether the order of a norm is a float that only the compiled code knows; calls with special ones bail out.

    NumPy counts elements for 0, and takes the largest or smallest for infinities.
    """
    if type(order) is not Traced or order.ndim or order.python is not float:
        return False
    special = builder.elementwise("logical_not", builder.elementwise("isfinite", order.node))
    zero = builder.elementwise("equal", order.node, 0.0)
    order.tracer.checks.append(builder.elementwise("logical_or", special, zero))
    return True


@overrides(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002
    tracer = tracer_of()
    array: Any = traced(tracer, x)
    if type(ord) is SymInt:
        ord = int(ord)  # noqa: A001  # guards the order
    if array.dtype.kind == "c":
        array = np.abs(array)
    elif array.dtype.kind != "f":
        array = METHODS["astype"](array, float)
    over = axes_of(axis, array.ndim)
    options = ReductionOptions(over, keepdims=keepdims)
    if ord is None or (ord == 2 and len(over) == 1) or (ord == "fro" and len(over) == 2):
        total = reduced("sum", array * array, options)
        if tracer.differentiates:  # sqrt has no derivative at 0; the norm has the subgradient 0
            nothing = total == 0
            return np.where(nothing, total, np.sqrt(np.where(nothing, array.dtype.type(1), total)))
        return np.sqrt(total)
    size_: Any = np.abs(array)
    if len(over) == 1 and is_traced_order(ord):
        return np.power(np.sum(np.power(size_, ord), axis=over, keepdims=keepdims), 1 / ord)
    if len(over) != 1 or type(ord) not in (int, float):
        raise UnsupportedError("norm of matrices by this order")
    if abs(ord) == np.inf:
        return (np.max if ord > 0 else np.min)(size_, axis=over, keepdims=keepdims)
    if ord == 0:
        return reduced("sum", METHODS["astype"](array != 0, array.dtype), options)
    if ord == 1:
        return reduced("sum", size_, options)
    total = reduced("sum", np.power(size_, ord), options)
    return np.power(total, array.dtype.type(1 / ord))
