"""Statistics of arrays of computed length: reductions without NaN, running reductions, sorted elements and quantiles.

Sorting needs memory of a known size: the elements of the rest are NaN or the largest int, which sort behind all others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.dynamic.computed_size import memory_for
from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, METHODS, DynamicArray, Source, is_int
from jitkernels.compiler.capture.dynamic.dynamic_reductions import mean, reduced, require_elements, var
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy import order_statistics
from jitkernels.compiler.capture.numpy.masked_proxy import is_congruent
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def _without_options(name: str, axis: Any, options: dict[str, Any]) -> None:
    given = {key for key, value in options.items() if value is not None and value is not np._NoValue}
    if given or axis not in (None, 0, -1):
        raise UnknownSizeError(f"{name} of an array of computed length, with options")


def _filled(array: DynamicArray, identity: float) -> Any:
    """The elements, with a number in place of NaN."""
    return array if array.dtype.kind != "f" else np.where(np.isnan(array), array.dtype.type(identity), array)  # type: ignore[call-overload]


def _count(array: DynamicArray) -> Any:
    """The number of elements that are not NaN."""
    if array.dtype.kind != "f":
        return as_number(array.tracer, as_int(array.tracer, array.length), int)
    return reduced(~np.isnan(array), np.add, {})  # type: ignore[call-overload]


def _require_more_than(array: DynamicArray, count: Any, least: int) -> None:
    """Bail out of calls in which too few elements are not NaN, of which NumPy warns."""
    array.tracer.checks.append(elementwise("less_equal", as_int(array.tracer, count), least))


def _sum(name: str, ufunc: Any, identity: float) -> Callable[..., Any]:
    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        _without_options(name, axis, options)
        return reduced(_filled(array, identity), ufunc, {})

    return call


def _extreme(name: str, ufunc: Any, identity: float) -> Callable[..., Any]:
    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        _without_options(name, axis, options)
        _require_more_than(array, _count(array), 0)
        return reduced(_filled(array, identity), ufunc, {})

    return call


def nanmean(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.nanmean``."""
    _without_options("numpy.nanmean", axis, options)
    if array.dtype.kind != "f":
        return mean(array)
    count = _count(array)
    _require_more_than(array, count, 0)
    return (reduced(_filled(array, 0.0), np.add, {}) / count).astype(array.dtype)


def nanvar(array: DynamicArray, axis: Any = None, *, ddof: Any = 0, **options: Any) -> Any:
    """``numpy.nanvar``."""
    _without_options("numpy.nanvar", axis, options)
    if ddof not in (0, 1):
        raise UnknownSizeError("numpy.nanvar of an array of computed length, with options")
    if array.dtype.kind != "f":
        return var(array, ddof=ddof)
    count, center = _count(array), nanmean(array)
    _require_more_than(array, count, ddof)
    deviations = _filled(array - center, 0.0)
    return (reduced(deviations * deviations, np.add, {}) / (count - ddof)).astype(array.dtype)


def nanstd(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.nanstd``."""
    return np.sqrt(nanvar(array, axis, **options))


def count_nonzero(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.count_nonzero``, which gives a Python int."""
    _without_options("numpy.count_nonzero", axis, options)
    return as_number(array.tracer, reduced(array != 0, np.add, {}).node, int)


def _running(ufunc: Any) -> Callable[..., Any]:
    """``numpy.cumsum`` or ``numpy.cumprod``."""

    def call(array: DynamicArray, axis: Any = None, **options: Any) -> DynamicSlice:
        _without_options(f"numpy.{ufunc.__name__}.accumulate", axis, options)
        kind = array.dtype
        dtype = kind if kind.kind == "f" else np.dtype("uint64" if kind.kind == "u" else "int64")
        if kind.kind not in "fiub" or kind == "float16":
            raise UnknownSizeError(f"numpy.{ufunc.__name__}.accumulate of an array of computed length of {kind}")
        result = memory_for(array, 0, dtype)
        total = Variable("_jk_total", dtype.type(0 if ufunc is np.add else 1))

        def step(index: Any) -> None:
            total.set(ufunc(total.value, array.at(index).astype(dtype)))
            result.base[index] = total.value

        array.each(step, total)
        return result

    return call


def _ordered(array: DynamicArray, name: str, dtype: Any = None) -> DynamicSlice:
    """A new array of the sorted elements; those of its base that are beyond its end are the largest."""
    kind = np.dtype(array.dtype if dtype is None else dtype)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or array.dtype.name in ("float16", "uint64"):
        raise UnknownSizeError(f"{name} of an array of computed length of {array.ndim} dimensions, {array.dtype}")
    memory = memory_for(array, np.nan if kind.kind == "f" else np.iinfo(kind).max, kind)
    memory.assign(array.astype(kind))
    return DynamicSlice(np.sort(memory.base), 0, memory.stop, owns=True)


def sort(array: DynamicArray, axis: Any = -1, kind: Any = None, **options: Any) -> DynamicSlice:
    """``numpy.sort``: equal elements are not told apart, so that all kinds give the same."""
    _without_options("numpy.sort", axis, options)
    return _ordered(array, "numpy.sort")


class Partitioned(DynamicArray):
    """``numpy.partition(array, place)``, or a side of it, for uses in which the order of its elements does not matter."""

    def __init__(self, ordered: DynamicSlice, place: Any) -> None:
        super().__init__(ordered.tracer, ordered.length, ordered.dtype)
        self._ordered, self._place = ordered, place

    @property
    def sources(self) -> list[Source]:
        return self._ordered.sources

    def at(self, index: Any) -> Any:  # noqa: ARG002  # of the base class
        raise UnknownSizeError("the order of elements that numpy.partition leaves open")

    def __getitem__(self, key: Any) -> Any:
        """The element at the place, or those on a side of it."""
        if is_int(key) and self._is_at(key, 0):
            return self._ordered[key]
        if type(key) is slice and key.step is None:
            start, stop = key.start, key.stop
            if start is None and (self._is_at(stop, 0) or self._is_at(stop, 1)):
                return Partitioned(self._ordered[:stop], None)
            if stop is None and (self._is_at(start, 0) or self._is_at(start, 1)):
                return Partitioned(self._ordered[start:], None)
        return super().__getitem__(key)

    def _is_at(self, key: Any, distance: int) -> bool:
        """Whether an index is surely so far behind the place."""
        if self._place is None or not is_int(key):
            return False
        nodes = as_int(self.tracer, key), as_int(self.tracer, self._place + distance)
        return is_congruent(*nodes)

    def __array_ufunc__(self, ufunc: Any, way: str, *inputs: Any, **keywords: Any) -> Any:
        if way == "reduce" and inputs[0] is self:
            return reduced(self._ordered, ufunc, keywords)
        return super().__array_ufunc__(ufunc, way, *inputs, **keywords)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        if function in UNORDERED and arguments and arguments[0] is self:
            return UNORDERED[function](self._ordered, *arguments[1:], **keywords)
        return super().__array_function__(function, types, arguments, keywords)

    def __getattr__(self, name: str) -> Any:
        function = getattr(np, name, None) if not name.startswith("_") else None
        if function in UNORDERED:
            return lambda *arguments, **keywords: UNORDERED[function](self._ordered, *arguments, **keywords)
        return super().__getattr__(name)


def partition(array: Any, kth: Any, axis: Any = -1, kind: Any = None, **options: Any) -> Partitioned:
    """``numpy.partition`` at one place."""
    _without_options("numpy.partition", axis, options)
    if not isinstance(array, DynamicArray) or not is_int(kth):
        raise UnknownSizeError("numpy.partition of an array of computed length, at several places")
    place = as_int(array.tracer, kth)
    least, most = (elementwise("less", place, 0), elementwise("greater_equal", place, as_int(array.tracer, array.length)))
    array.tracer.checks += [least, most]  # of which NumPy raises, or counts from the end
    return Partitioned(_ordered(array, "numpy.partition"), kth)


def _floats(array: DynamicArray, name: str) -> tuple[Any, Any, Any]:
    """The sorted elements as floats, their number, and the last one, which is NaN where one of them is."""
    if array.dtype.name not in order_statistics.AVERAGED:
        raise UnknownSizeError(f"{name} of an array of computed length of {array.dtype}")
    require_elements(array)
    ordered = _ordered(array, name, np.float64)
    count = as_number(array.tracer, as_int(array.tracer, ordered.length), int)
    return ordered.base, count, ordered.base[count - 1]


def _quantiles(name: str, divisor: float, *, leaves_out: bool) -> Callable[..., Any]:
    def call(array: DynamicArray, q: Any, axis: Any = None, **options: Any) -> Any:
        if not isinstance(array, DynamicArray) or isinstance(q, DynamicArray):
            raise UnknownSizeError(f"numpy.{name} of quantiles of computed number")
        _without_options(f"numpy.{name}", axis, options)
        fractions, shape = order_statistics.fractions_of(q, divisor, name, accepts_vector=True)
        ordered, count, last = _floats(array, f"numpy.{name}")
        if leaves_out:
            count = as_number(array.tracer, as_int(array.tracer, np.sum(~np.isnan(ordered))), int)
            _require_more_than(array, count, 0)
        results = [order_statistics.between(ordered, count, fraction) for fraction in fractions]
        if not leaves_out:
            results = [np.where(np.isnan(last), last, result) for result in results]
        return np.stack(results) if shape else results[0][()]

    return call


def _median(*, leaves_out: bool) -> Callable[..., Any]:
    name = "nanmedian" if leaves_out else "median"

    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        _without_options(f"numpy.{name}", axis, options)
        ordered, count, last = _floats(array, f"numpy.{name}")
        if leaves_out:
            count = as_number(array.tracer, as_int(array.tracer, np.sum(~np.isnan(ordered))), int)
            _require_more_than(array, count, 0)
        low, high = ordered[(count - 1) // 2], ordered[count // 2]
        middle = np.where(low == high, low, (low + high) / 2.0)
        return (middle if leaves_out else np.where(np.isnan(last), last, middle))[()]

    return call


def _like(value: Any) -> Callable[..., Any]:
    def make(a: Any, dtype: Any = None, **options: Any) -> Any:
        if not isinstance(a, DynamicArray) or set(options) - {"order", "subok"}:
            raise UnknownSizeError("an array like one of computed length, with options")
        return memory_for(a, value, a.dtype if dtype is None else dtype)

    return make


def full_like(a: Any, fill_value: Any, dtype: Any = None, **options: Any) -> Any:
    """``numpy.full_like``."""
    if isinstance(fill_value, DynamicArray) or (type(fill_value) is Traced and fill_value.ndim):
        raise UnknownSizeError("numpy.full_like of an array of computed length, with an array")
    return _like(fill_value)(a, dtype, **options)


FUNCTIONS.update({
    np.nansum: _sum("numpy.nansum", np.add, 0.0), np.nanprod: _sum("numpy.nanprod", np.multiply, 1.0),
    np.nanmax: _extreme("numpy.nanmax", np.maximum, -np.inf), np.nanmin: _extreme("numpy.nanmin", np.minimum, np.inf),
    np.nanmean: nanmean, np.nanvar: nanvar, np.nanstd: nanstd, np.count_nonzero: count_nonzero,
    np.cumsum: _running(np.add), np.cumprod: _running(np.multiply), np.sort: sort,
    np.median: _median(leaves_out=False), np.nanmedian: _median(leaves_out=True),
    np.partition: partition, np.zeros_like: _like(0), np.empty_like: _like(0), np.ones_like: _like(1), np.full_like: full_like,
})  # fmt: skip
for _name, _divisor in (("quantile", 1.0), ("percentile", 100.0)):
    FUNCTIONS[getattr(np, _name)] = _quantiles(_name, _divisor, leaves_out=False)
    FUNCTIONS[getattr(np, f"nan{_name}")] = _quantiles(f"nan{_name}", _divisor, leaves_out=True)
UNORDERED = {function: FUNCTIONS[function] for function in (
    np.sum, np.prod, np.min, np.max, np.any, np.all, np.mean, np.var, np.std, np.median, np.sort, np.nansum, np.nanprod,
    np.nanmin, np.nanmax, np.nanmean, np.nanvar, np.nanstd, np.nanmedian, np.quantile, np.percentile, np.count_nonzero,
)}  # fmt: skip
"""Functions whose results do not depend on the order of the elements."""
METHODS.update(cumsum=FUNCTIONS[np.cumsum], cumprod=FUNCTIONS[np.cumprod])
