"""Functions that choose, clip, round and tell apart elements, and what NumPy asks arrays about themselves."""

import functools
from typing import Any

import numpy as np

from jitkernels import functions
from jitkernels.frontends.foreign import shaped
from jitkernels.frontends.reductions import axes_of, is_given, reduced, tracer_of
from jitkernels.frontends.shaping import copied, of_array, ravel
from jitkernels.frontends.tables import METHODS, SERVICES, implements
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import (
    apply,
    cast_mask,
    cast_to,
    common,
    kind_of,
    operand,
    settled,
    stored,
)
from jitkernels.frontends.watching import unwatched
from jitkernels.frontends.whole import as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    if x is None or y is None:
        raise UnknownError("where with one argument")
    tracer = tracer_of()
    mask = operand(tracer, condition)
    kind = kind_of(mask)
    if kind not in (bool, "bool"):
        mask = fresh(tracer, apply(tracer, "not_equal", mask, 0))
    one, other = operand(tracer, x), operand(tracer, y)
    name = settled(common(kind_of(one), kind_of(other)))
    nodes = [cast_to(tracer, mask, "bool"), cast_to(tracer, one, name), cast_to(tracer, other, name)]
    shape = construct.broadcast_shapes([node.shape for node in nodes])
    made = fresh(tracer, Node("where", nodes, name, shape))
    operands = [value for value in (mask, one, other) if type(value) is Traced]
    made.view.storage.is_c = result(tracer, made.node, *operands).view.storage.is_c
    return made


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError("list of cases must be same length as list of conditions")
    tracer = tracer_of()
    choices = [operand(tracer, one) for one in (*choicelist, default)]
    name = settled(functools.reduce(common, [kind_of(one) for one in choices]))
    found: Any = fresh(tracer, cast_to(tracer, choices[-1], name))
    for mask, choice in zip(reversed(list(condlist)), reversed(choices[:-1]), strict=True):
        node = cast_mask(tracer, operand(tracer, mask))
        nodes = (node, cast_to(tracer, choice, name), found.node)
        found = fresh(
            tracer, Node("where", nodes, name, construct.broadcast_shapes([n.shape for n in nodes]))
        )
    return found


@implements(methods="clip")
def clip_method(a: Any, min: Any = None, max: Any = None, out: Any = None, **keywords: Any) -> Any:  # noqa: A002
    return clip(a, min, max, out, **keywords)


@implements(np.clip)
def clip(
    a: Any, a_min: Any = np._NoValue, a_max: Any = np._NoValue, out: Any = None, *, min: Any = np._NoValue,  # noqa: A002
    max: Any = np._NoValue, **keywords: Any,  # noqa: A002
) -> Any:  # fmt: skip
    if keywords:
        raise UnknownError("clip with options of a universal function")
    bounds_given = [one is not np._NoValue for one in (a_min, a_max, min, max)]
    if bounds_given[0] != bounds_given[1] or (bounds_given[0] and any(bounds_given[2:])):
        raise UnknownError("clip with one of its bounds, or with both twice")  # which NumPy refuses
    low = a_min if is_given(a_min) else min if is_given(min) else None
    high = a_max if is_given(a_max) else max if is_given(max) else None
    tracer = tracer_of()
    given = traced(tracer, a) if type(a) is not Traced else a
    if low is None and high is None:
        found: Any = copied(given)
    else:
        bounds = [operand(tracer, one) for one in (low, high) if one is not None]
        name = settled(functools.reduce(common, [kind_of(one) for one in (given, *bounds)]))
        found = fresh(tracer, cast_to(tracer, given, name))
        if low is not None:
            # The bound first: of two equal numbers, such as zeros of other signs, the second is taken.
            bound = fresh(tracer, cast_to(tracer, operand(tracer, low), name))
            found = fresh(tracer, apply(tracer, "maximum", bound, found))
        if high is not None:
            bound = fresh(tracer, cast_to(tracer, operand(tracer, high), name))
            found = fresh(tracer, apply(tracer, "minimum", bound, found))
        found = result(tracer, found.node, given)
    return stored(tracer, found.node, out) if out is not None else found


@implements(np.round, np.around, methods="round")
def round_(a: Any, decimals: Any = 0, out: Any = None) -> Any:
    tracer = tracer_of()
    given = traced(tracer, a)
    if type(decimals) is not int:
        raise UnknownError("round to a number of decimals that is no plain int")
    if given.dtype.kind == "f":
        node = given.node
        if decimals == 0:
            node = construct.elementwise("rint", node)
        else:
            factor = construct.constant(10.0 ** abs(decimals), given.dtype.name)
            first, second = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
            node = construct.elementwise("rint", construct.elementwise(first, node, factor))
            node = construct.elementwise(second, node, factor)
    elif given.dtype.kind in "iu" and decimals >= 0:
        node = given.node
    else:
        raise UnknownError("round of bools, or of ints to tens")
    return stored(tracer, node, out) if out is not None else result(tracer, node, given)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    given = of_array(x)
    if (
        given.dtype.kind != "f"
        or not copy
        or not all(type(one) is float or type(one) is int for one in (nan,))
    ):
        raise UnknownError("nan_to_num with these arguments")
    limits = np.finfo(given.dtype)
    found: Any = np.where(np.isnan(given), given.dtype.type(nan), given)
    found = np.where(given == np.inf, given.dtype.type(limits.max if posinf is None else posinf), found)
    found = np.where(given == -np.inf, given.dtype.type(limits.min if neginf is None else neginf), found)
    return found if given.ndim else result(given.tracer, found.node)


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    tracer = tracer_of()
    if type(dst) is not Traced:
        raise UnknownError("copyto to an array that is no argument")
    value = operand(tracer, src)
    kind = kind_of(value)
    is_python = kind in (int, float, bool)
    node = _number(tracer, value, dst.node.dtype) if is_python else traced(tracer, value).node
    stored(tracer, node, dst, where, casting, np.copyto)


def _number(tracer: Tracer, value: Any, dtype: str) -> Node:
    if type(value) is float and np.dtype(dtype).kind != "f":
        raise TypeError("Cannot cast scalar according to the rule 'same_kind'")
    return cast_to(tracer, value, dtype)


@implements(np.shape)
def shape(a: Any) -> Any:
    return of_array(a).shape


@implements(np.ndim)
def ndim(a: Any) -> Any:
    return of_array(a).ndim


@implements(np.size)
def size(a: Any, axis: Any = None) -> Any:
    given = of_array(a)
    if axis is None:
        return given.size
    over = axes_of(axis, given.ndim)
    return as_whole(given.tracer, extents.product(given.extents[i] for i in over))


@implements(np.iscomplexobj)
def iscomplexobj(x: Any) -> bool:
    if type(x) is not Traced:
        raise UnknownError("whether a list is complex")
    return False


@implements(np.isrealobj)
def isrealobj(x: Any) -> bool:
    return not iscomplexobj(x)


@implements(np.real)
def real(val: Any) -> Any:
    return val if isinstance(val, int | float) else of_array(val)


@implements(np.imag)
def imag(val: Any) -> Any:
    return 0 if isinstance(val, int) else of_array(val).imag


@implements(np.result_type)
def result_type(*arrays_and_dtypes: Any) -> Any:
    stand = {int: 1, float: 1.0, bool: True}
    tracer = tracer_of()
    given: list[Any] = []
    for one in arrays_and_dtypes:
        if isinstance(one, np.dtype | type | str):
            given.append(one)
            continue
        kind = kind_of(operand(tracer, one))
        given.append(stand[kind] if kind in stand else np.dtype(kind))
    return np.result_type(*given)


def _sum_without_nan(kind: str, nothing: float) -> Any:
    def sum_(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **others: Any
    ) -> Any:
        if any(is_given(one) for one in others.values()):
            raise UnknownError(f"nan{kind} with these options")
        tracer = tracer_of()
        given = traced(tracer, a)
        if given.dtype.kind == "f":
            given = result(tracer, where(np.isnan(given), given.dtype.type(nothing), given).node, given)
        return reduced(tracer, kind, given, axis, dtype, out, bool(keepdims) if is_given(keepdims) else False)

    return sum_


implements(np.nansum)(_sum_without_nan("sum", 0))
implements(np.nanprod)(_sum_without_nan("prod", 1))


SORTED = ("float32", "float64")
"""Dtypes whose elements the row SORT orders. Zeros come by their signs, which NumPy leaves to chance."""


@implements(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    given = of_array(a)
    if order is not None:
        raise UnknownError("sort with order=")
    if axis is None:
        given, axis = ravel(given), -1
    along = axes_of(axis, given.ndim)[0]
    if kind in (None, "quicksort", "heapsort") and not stable and given.dtype.name in SORTED:
        moved = SERVICES["function"]
        rows = moved(given.tracer, np.moveaxis, (given, along, -1), {})
        return moved(given.tracer, np.moveaxis, (_sorted(rows), -1, along), {})
    call = functools.partial(np.sort, axis=along, kind=kind, stable=stable)
    return shaped(given.tracer, call, "sort", given.dtype.name, given, given)


def _sorted(rows: Traced) -> Traced:
    """What the row SORT makes of rows."""
    with unwatched():
        kernel = functions.everyday("sort")
    found: Traced = rows.__jitkernels_call__(kernel.__self__.row, kernel, (rows,), {})
    return found


@implements(np.argsort, methods="argsort")
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    given = of_array(a)
    if order is not None:
        raise UnknownError("argsort with order=")
    if axis is None:
        given, axis = ravel(given), -1
    along = axes_of(axis, given.ndim)[0]
    call = functools.partial(np.argsort, axis=along, kind=kind, stable=stable)
    return shaped(given.tracer, call, "argsort", "int64", given, given)


@implements(methods="sort")
def sort_method(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    a.view.write(SERVICES["function"](a.tracer, np.sort, (a, axis, kind, order), {"stable": stable}).node)


@implements(np.searchsorted, methods="searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        raise UnknownError("searchsorted with sorter=")
    table, values = of_array(a), of_array(v)
    if table.ndim != 1:
        raise ValueError("object too deep for desired array")
    call = functools.partial(np.searchsorted, side=side)
    return shaped(table.tracer, call, "searchsorted", "int64", values, table, values)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if any(type(one) not in (type(None), int, float) for one in (left, right, period)):
        raise UnknownError("interp with these options")
    values, table, heights = of_array(x), of_array(xp), of_array(fp)
    if table.ndim != 1 or heights.ndim != 1 or table.extents != heights.extents:
        raise ValueError("fp and xp are not of the same length.")
    call = functools.partial(np.interp, left=left, right=right, period=period)
    return shaped(values.tracer, call, "interp", "float64", values, values, table, heights)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002
    tracer = tracer_of()
    given = traced(tracer, x)
    if given.dtype.kind != "f":
        given = METHODS["astype"](given, float)
    over = axes_of(axis, given.ndim)
    if ord is None or (ord == 2 and len(over) == 1) or (ord == "fro" and len(over) == 2):
        total = reduced(tracer, "sum", given * given, over, None, None, keepdims)
        if tracer.differentiates:  # of nothing a root has no derivative, and a norm has what is in the middle
            nothing = total == 0
            return np.where(nothing, total, np.sqrt(np.where(nothing, given.dtype.type(1), total)))
        return np.sqrt(total)
    if len(over) != 1 or type(ord) not in (int, float):
        raise UnknownError("norm of matrices by this order")
    size_: Any = np.abs(given)
    if ord == np.inf:
        return np.max(size_, axis=over, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(size_, axis=over, keepdims=keepdims)
    if ord == 0:
        return reduced(tracer, "sum", METHODS["astype"](given != 0, given.dtype), over, None, None, keepdims)
    if ord == 1:
        return reduced(tracer, "sum", size_, over, None, None, keepdims)
    total = reduced(tracer, "sum", np.power(size_, ord), over, None, None, keepdims)
    return np.power(total, given.dtype.type(1 / ord))
