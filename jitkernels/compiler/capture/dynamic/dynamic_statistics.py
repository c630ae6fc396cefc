"""Statistics of arrays of computed length: reductions that leave NaN out, and running reductions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.dynamic.computed_size import memory_for
from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, METHODS, DynamicArray
from jitkernels.compiler.capture.dynamic.dynamic_reductions import mean, reduced, var
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def without_options(name: str, axis: Any, options: dict[str, Any]) -> None:
    given = {key for key, value in options.items() if value is not None and value is not np._NoValue}
    if given or axis not in (None, 0, -1):
        raise UnknownSizeError(f"{name} of an array of computed length, with options")


def _filled(array: DynamicArray, identity: float) -> Any:
    """The elements, with a number in place of NaN."""
    return array if array.dtype.kind != "f" else np.where(np.isnan(array), array.dtype.type(identity), array)


def _count(array: DynamicArray) -> Any:
    """The number of elements that are not NaN."""
    if array.dtype.kind != "f":
        return as_number(array.tracer, as_int(array.tracer, array.length), int)
    return reduced(~np.isnan(array), np.add, {})


def require_more_than(array: DynamicArray, count: Any, least: int) -> None:
    """Bail out of calls in which too few elements are not NaN, of which NumPy warns."""
    array.tracer.checks.append(elementwise("less_equal", as_int(array.tracer, count), least))


def _sum(name: str, ufunc: Any, identity: float) -> Callable[..., Any]:
    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        without_options(name, axis, options)
        return reduced(_filled(array, identity), ufunc, {})

    return call


def _extreme(name: str, ufunc: Any, identity: float) -> Callable[..., Any]:
    def call(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
        without_options(name, axis, options)
        require_more_than(array, _count(array), 0)
        return reduced(_filled(array, identity), ufunc, {})

    return call


def nanmean(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.nanmean``."""
    without_options("numpy.nanmean", axis, options)
    if array.dtype.kind != "f":
        return mean(array)
    count = _count(array)
    require_more_than(array, count, 0)
    return (reduced(_filled(array, 0.0), np.add, {}) / count).astype(array.dtype)


def nanvar(array: DynamicArray, axis: Any = None, *, ddof: Any = 0, **options: Any) -> Any:
    """``numpy.nanvar``."""
    without_options("numpy.nanvar", axis, options)
    if ddof not in (0, 1):
        raise UnknownSizeError("numpy.nanvar of an array of computed length, with options")
    if array.dtype.kind != "f":
        return var(array, ddof=ddof)
    count, center = _count(array), nanmean(array)
    require_more_than(array, count, ddof)
    deviations = np.where(np.isnan(array), array.dtype.type(0), array - center)  # NaN for infinities, as NumPy's
    return (reduced(deviations * deviations, np.add, {}) / (count - ddof)).astype(array.dtype)


def nanstd(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.nanstd``."""
    return np.sqrt(nanvar(array, axis, **options))


def count_nonzero(array: DynamicArray, axis: Any = None, **options: Any) -> Any:
    """``numpy.count_nonzero``, which gives a Python int."""
    without_options("numpy.count_nonzero", axis, options)
    return as_number(array.tracer, reduced(np.not_equal(array, 0), np.add, {}).node, int)


def _running(ufunc: Any) -> Callable[..., Any]:
    """``numpy.cumsum`` or ``numpy.cumprod``."""

    def call(array: DynamicArray, axis: Any = None, **options: Any) -> DynamicSlice:
        without_options(f"numpy.{ufunc.__name__}.accumulate", axis, options)
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


FUNCTIONS.update({
    np.nansum: _sum("numpy.nansum", np.add, 0.0), np.nanprod: _sum("numpy.nanprod", np.multiply, 1.0),
    np.nanmax: _extreme("numpy.nanmax", np.maximum, -np.inf), np.nanmin: _extreme("numpy.nanmin", np.minimum, np.inf),
    np.nanmean: nanmean, np.nanvar: nanvar, np.nanstd: nanstd, np.count_nonzero: count_nonzero,
    np.cumsum: _running(np.add), np.cumprod: _running(np.multiply),
})  # fmt: skip
METHODS.update(cumsum=FUNCTIONS[np.cumsum], cumprod=FUNCTIONS[np.cumprod])
