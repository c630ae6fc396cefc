"""Sorted elements of arrays of computed length, their partitions, medians and quantiles.

Sorting needs memory of a known size: the elements of the rest are NaN or the largest int, which sort behind all others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.dynamic.computed_size import memory_for
from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, DynamicArray, Source, is_int
from jitkernels.compiler.capture.dynamic.dynamic_reductions import reduced, require_elements
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.dynamic.dynamic_statistics import require_more_than, without_options
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy import order_statistics
from jitkernels.compiler.capture.numpy.masked_proxy import is_congruent
from jitkernels.compiler.capture.numpy.numpy_callouts import call_with_shape_of
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def _ordered(array: DynamicArray, name: str, dtype: Any = None) -> DynamicSlice:
    """A new array of the sorted elements; those of its base that are beyond its end are the largest."""
    kind = np.dtype(array.dtype if dtype is None else dtype)
    if array.ndim != 1 or array.dtype.kind not in "fiu" or array.dtype.name in ("float16", "uint64"):
        raise UnknownSizeError(f"{name} of an array of computed length of {array.ndim} dimensions, {array.dtype}")
    memory = memory_for(array, np.nan if kind.kind == "f" else np.iinfo(kind).max, kind)
    memory.assign(array.astype(kind))
    return DynamicSlice(_sorted_memory(memory.base), 0, memory.stop, owns=True)


def _sorted_memory(base: Any) -> Any:
    """All elements of an array, sorted: by NumPy where the array grows, as code of kernels is for classes of sizes."""
    tracer = base.tracer
    room = () if tracer.tape_capacity is None else symbolic_dims.symbols_of(tracer.tape_capacity[0])
    if not {*room} & {*symbolic_dims.symbols_of(base.extents[0])}:
        return np.sort(base)
    return call_with_shape_of(tracer, np.sort, "sort", base.dtype.name, base, base)


def sort(array: DynamicArray, axis: Any = -1, kind: Any = None, **options: Any) -> DynamicSlice:
    """``numpy.sort``: equal elements do not differ, so that all kinds give the same."""
    without_options("numpy.sort", axis, options)
    return _ordered(array, "numpy.sort")


class Partitioned(DynamicArray):
    """``numpy.partition(array, place)``, or a side of it, for uses that do not depend on the order."""

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
    without_options("numpy.partition", axis, options)
    if not isinstance(array, DynamicArray) or not is_int(kth):
        raise UnknownSizeError("numpy.partition of an array of computed length, at several places")
    place = as_int(array.tracer, kth)
    least, most = (
        elementwise("less", place, 0),
        elementwise("greater_equal", place, as_int(array.tracer, array.length)),
    )
    array.tracer.checks += [least, most]  # of which NumPy raises, or counts from the end
    return Partitioned(_ordered(array, "numpy.partition"), kth)


def _floats(array: DynamicArray, name: str, *, leaves_out: bool) -> tuple[Any, Any, Any]:
    """The sorted elements as floats, how many of them count, and the last one, which is NaN where one of them is."""
    if array.dtype.name not in order_statistics.AVERAGED:
        raise UnknownSizeError(f"{name} of an array of computed length of {array.dtype}")
    require_elements(array)
    ordered = _ordered(array, name, np.float64)
    length = as_number(array.tracer, as_int(array.tracer, ordered.length), int)
    count = length
    if leaves_out:
        count = as_number(array.tracer, as_int(array.tracer, np.sum(~np.isnan(ordered.base))), int)
        require_more_than(array, count, 0)
    return ordered.base, count, ordered.base[length - 1]


def _quantiles(name: str, divisor: float, *, leaves_out: bool) -> Callable[..., Any]:
    def call(array: DynamicArray, q: Any, axis: Any = None, **options: Any) -> Any:
        if not isinstance(array, DynamicArray) or isinstance(q, DynamicArray):
            raise UnknownSizeError(f"numpy.{name} of quantiles of computed number")
        without_options(f"numpy.{name}", axis, options)
        fractions, shape = order_statistics.fractions_of(q, divisor, name, accepts_vector=True)
        ordered, count, last = _floats(array, f"numpy.{name}", leaves_out=leaves_out)
        results = [order_statistics.between(ordered, count, fraction) for fraction in fractions]
        if not leaves_out:
            results = [np.where(np.isnan(last), last, result) for result in results]
        return np.stack(results) if shape else results[0][()]

    return call


def _median(*, leaves_out: bool) -> Callable[..., Any]:
    name = "nanmedian" if leaves_out else "median"

    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        without_options(f"numpy.{name}", axis, options)
        ordered, count, last = _floats(array, f"numpy.{name}", leaves_out=leaves_out)
        low, high = ordered[(count - 1) // 2], ordered[count // 2]
        middle = np.where(low == high, low, (low + high) / 2.0)
        return (middle if leaves_out else np.where(np.isnan(last), last, middle))[()]

    return call


FUNCTIONS.update({
    np.sort: sort, np.partition: partition,
    np.median: _median(leaves_out=False), np.nanmedian: _median(leaves_out=True),
})  # fmt: skip
for _name, _divisor in (("quantile", 1.0), ("percentile", 100.0)):
    FUNCTIONS[getattr(np, _name)] = _quantiles(_name, _divisor, leaves_out=False)
    FUNCTIONS[getattr(np, f"nan{_name}")] = _quantiles(f"nan{_name}", _divisor, leaves_out=True)
UNORDERED = {function: FUNCTIONS[function] for function in (
    np.sum, np.prod, np.min, np.max, np.any, np.all, np.mean, np.var, np.std, np.median, np.sort, np.nansum, np.nanprod,
    np.nanmin, np.nanmax, np.nanmean, np.nanvar, np.nanstd, np.nanmedian, np.quantile, np.percentile, np.count_nonzero,
)}  # fmt: skip
"""Functions whose results do not depend on the order of the elements."""
