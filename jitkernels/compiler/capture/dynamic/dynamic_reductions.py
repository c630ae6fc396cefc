"""Reductions of arrays of computed length: loops with one accumulator."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.dynamic.dynamic_array import (
    FUNCTIONS,
    METHODS,
    DynamicArray,
    as_operand,
    require_same_length,
)
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicColumns
from jitkernels.compiler.capture.dynamic.masked_selection import MaskedSelection
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError

IDENTITIES: dict[Any, Callable[[np.dtype[Any]], Any]] = {
    np.add: lambda dtype: dtype.type(0),
    np.multiply: lambda dtype: dtype.type(1),
    np.maximum: lambda dtype: _lowest(dtype),
    np.minimum: lambda dtype: _highest(dtype),
    np.logical_and: lambda _: np.True_,
    np.logical_or: lambda _: np.False_,
}
"""The value of a reduction before the first element."""


def _lowest(dtype: np.dtype[Any]) -> Any:
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)


def _highest(dtype: np.dtype[Any]) -> Any:
    return dtype.type(np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def _require_kinds(array: DynamicArray, name: str, kinds: str = "fiu") -> None:
    if array.ndim != 1 or array.dtype.kind not in kinds or array.dtype == "float16":
        raise UnknownSizeError(f"{name} of an array of computed length of {array.ndim} dimensions, {array.dtype}")


def _fold(array: DynamicArray, initial: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The value of ``combine(total, index)`` after all indices."""
    total = Variable("_jk_total", initial)
    array.each(lambda index: total.set(combine(total.value, index)), total)
    return total.value


def _accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a sum: one accumulator of float32 would lose what NumPy's pairwise sums keep."""
    return np.dtype("float64") if dtype == "float32" else dtype


def require_elements(array: DynamicArray) -> None:
    """Bail out of calls with no elements: NumPy raises, or warns."""
    array.tracer.checks.append(elementwise("equal", as_int(array.tracer, array.length), 0))


@serves("reduce dynamic")
def reduced(array: DynamicArray, ufunc: Any, keywords: dict[str, Any]) -> Any:
    """``ufunc.reduce(array)``."""
    name = f"numpy.{ufunc.__name__}.reduce"
    options = {key: value for key, value in keywords.items() if value is not None and value is not np._NoValue}
    if type(array) is DynamicColumns and options in ({"axis": 1}, {"axis": -1}):
        array, options = array.rows, {"axis": 0}
    if array.ndim == 2 and ufunc is np.add and options == {"axis": 0} and array.dtype.kind == "f":
        return _sum_of_rows(array, array.dtype, array.at)
    if ufunc not in IDENTITIES or set(options) - {"axis"} or options.get("axis", 0) not in (0, -1):
        raise UnknownSizeError(f"{name} of an array of computed length, with options")
    is_sum = ufunc in (np.add, np.multiply)
    _require_kinds(array, name, "fiub" if is_sum or ufunc in (np.logical_and, np.logical_or) else "fiu")
    dtype = array.dtype
    if is_sum and dtype.kind in "iub":
        dtype = np.dtype("uint64" if dtype.kind == "u" else "int64")
    if ufunc in (np.maximum, np.minimum):
        require_elements(array)
    if isinstance(array, MaskedSelection):
        array = array.filled(IDENTITIES[ufunc](array.dtype))
    if ufunc in (np.logical_and, np.logical_or):
        return _fold(array, IDENTITIES[ufunc](dtype), lambda total, i: ufunc(total, array.at(i)))
    wide = _accumulator(dtype) if is_sum else dtype
    total = _fold(array, IDENTITIES[ufunc](wide), lambda total, i: ufunc(total, array.at(i).astype(wide)))
    return total.astype(dtype)


def _sum_of_rows(array: DynamicArray, dtype: np.dtype[Any], row: Callable[[Any], Any]) -> Any:
    """The sum of ``row(index)`` over all rows of a matrix with a computed number of them."""
    wide = _accumulator(dtype)
    total: Any = SERVICES["zeros"](array.tracer, array.shape[1], wide.name)

    def add(index: Any) -> None:
        total[...] += row(index).astype(wide)

    array.each(add)
    return total.astype(dtype)


def _method(ufunc: Any) -> Callable[..., Any]:
    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        return reduced(array, ufunc, {"axis": axis, **options})

    return call


def mean(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``array.mean()``."""
    _require_kinds(array, "the mean", "fiub")
    if options or axis not in (None, 0, -1):
        raise UnknownSizeError("the mean of an array of computed length, with options")
    require_elements(array)
    dtype = array.dtype if array.dtype.kind == "f" else np.dtype("float64")
    wide, count = _accumulator(dtype), as_number(array.tracer, as_int(array.tracer, array.length), int)
    if isinstance(array, MaskedSelection):
        array = array.filled(0)
    total = _fold(array, wide.type(0), lambda total, i: total + array.at(i).astype(wide))
    return (total / count).astype(dtype)


def var(array: DynamicArray, axis: Any = None, *, ddof: Any = 0, **options: Any) -> Any:
    """``array.var()``."""
    if options or axis not in (None, 0, -1) or ddof not in (0, 1) or array.dtype.kind not in "fiub":
        raise UnknownSizeError("the variance of an array of computed length, with options")
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    center, wide = mean(array), _accumulator(array.dtype)

    def combine(total: Any, index: Any) -> Any:
        apart = (array.at(index) - center).astype(wide)
        return total + apart * apart

    count = as_number(array.tracer, as_int(array.tracer, array.length), int)
    if ddof:
        array.tracer.checks.append(elementwise("less_equal", as_int(array.tracer, array.length), ddof))
    return (_fold(array, wide.type(0), combine) / (count - ddof)).astype(array.dtype)


def std(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``array.std()``."""
    return np.sqrt(var(array, axis, **options))


def _extreme_index(name: str, comparison: str) -> Callable[..., Any]:
    """``array.argmax()`` or ``array.argmin()``: the first extreme element, or the first NaN."""

    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        _require_kinds(array, name)
        if options or axis not in (None, 0, -1):
            raise UnknownSizeError(f"{name} of an array of computed length, with options")
        require_elements(array)
        tracer = array.tracer

        def combine(best: Any, index: Any) -> Any:
            node, best_node = array.at(index).node, array.at(best).node
            is_better = elementwise(comparison, node, best_node)
            if array.dtype.kind == "f":
                is_number = elementwise("equal", best_node, best_node)
                is_better = elementwise("logical_or", is_better, elementwise("isnan", node))
                is_better = elementwise("logical_and", is_better, is_number)
            node = elementwise("where", is_better, as_int(tracer, index), as_int(tracer, best))
            intervals.note(tracer, node, intervals.interval(tracer, index))  # as `best` is an earlier index, or 0
            return as_number(tracer, node, int)

        return as_number(tracer, as_int(tracer, _fold(array, 0, combine)), "int64")

    return call


@serves("dot dynamic")
def dot(left: Any, right: Any) -> Any:
    """``left @ right`` of two vectors, or of a vector and rows."""
    tracer = next(value for value in (left, right) if isinstance(value, DynamicArray)).tracer
    if isinstance(right, DynamicArray) and right.ndim == 2:
        return _product_with_rows(tracer, left, right)
    first, other = (as_operand(tracer, value) for value in (left, right))
    if not (isinstance(first, DynamicArray) and isinstance(other, DynamicArray)):
        raise UnknownSizeError("a product of an array of computed length with no vector")
    dtype = np.result_type(first.dtype, other.dtype)
    for array in (first, other):
        _require_kinds(array, "a product")
    require_same_length(tracer, first.length, other.length)
    wide = _accumulator(dtype)
    total = _fold(first, wide.type(0), lambda total, i: total + first.at(i).astype(wide) * other.at(i).astype(wide))
    return total.astype(dtype)


def _product_with_rows(tracer: Tracer, left: Any, rows: DynamicArray) -> Any:
    """``vector @ rows``: the sum of the rows, each times an element."""
    factors = as_operand(tracer, left)
    if not isinstance(factors, DynamicArray) or "f" not in (factors.dtype.kind, rows.dtype.kind):
        raise UnknownSizeError("a product of rows of computed number with no vector, or of ints")
    require_same_length(tracer, factors.length, rows.length)
    dtype = np.result_type(factors.dtype, rows.dtype)
    wide = _accumulator(dtype)
    return _sum_of_rows(rows, dtype, lambda index: factors.at(index).astype(wide) * rows.at(index).astype(wide))


for _names, _ufunc in (
    (("sum",), np.add), (("prod",), np.multiply), (("max", "amax"), np.maximum), (("min", "amin"), np.minimum),
    (("all",), np.logical_and), (("any",), np.logical_or),
):  # fmt: skip
    METHODS[_names[0]] = _method(_ufunc)
    FUNCTIONS.update(dict.fromkeys([getattr(np, name) for name in _names], METHODS[_names[0]]))
METHODS.update(
    argmax=_extreme_index("numpy.argmax", "greater"), argmin=_extreme_index("numpy.argmin", "less"),
)  # fmt: skip
FUNCTIONS.update({np.argmax: METHODS["argmax"], np.argmin: METHODS["argmin"]})
METHODS.update(mean=mean, var=var, std=std, dot=dot)
FUNCTIONS.update({np.mean: mean, np.var: var, np.std: std, np.dot: dot, np.inner: dot, np.vdot: dot})
