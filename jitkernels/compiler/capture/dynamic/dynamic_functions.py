"""Elementwise functions of arrays of computed length that are no universal functions, copies, and arrays like them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.dynamic.computed_size import memory_for
from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, METHODS, DynamicArray, applied
from jitkernels.compiler.capture.numpy.ufuncs import kind_of
from jitkernels.compiler.capture.override_registry import TABLE
from jitkernels.compiler.ir.builder import promoted
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def where(condition: Any, *values: Any) -> Any:
    """``numpy.where`` with three arguments."""
    if len(values) != 2:
        raise UnknownSizeError("numpy.where of an array of computed length")
    arrays = [value for value in (condition, *values) if isinstance(value, DynamicArray)]
    dtype = promoted([v.dtype.name if isinstance(v, DynamicArray) else kind_of(v) for v in values])
    return applied(arrays[0].tracer, TABLE[np.where], (condition, *values), dtype)


FUNCTIONS[np.where] = where


def astype(array: DynamicArray, dtype: Any, **options: Any) -> Any:
    """``array.astype(dtype)``."""
    kind = np.dtype(dtype)
    if set(options) - {"copy"} or kind.kind not in "fiub":
        raise UnknownSizeError("astype with options")
    return applied(array.tracer, lambda element: element.astype(kind), (array,), kind)


def copied(array: DynamicArray) -> Any:
    """``array.copy()``."""
    return applied(array.tracer, lambda element: element, (array,), array.dtype)


def made_array(a: Any, dtype: Any = None, **options: Any) -> Any:
    """``numpy.array(a, dtype)``, also of a list of computed length."""
    if not isinstance(a, DynamicArray) or options:
        raise UnknownSizeError("numpy.array of arrays of computed length, with options")
    return copied(a) if dtype is None else astype(a, dtype)


def as_array(a: Any, dtype: Any = None, **options: Any) -> Any:
    """``numpy.asarray(a, dtype)``: the array itself where it has the dtype."""
    is_same = isinstance(a, DynamicArray) and not options and dtype in (None, a.dtype)
    return a if is_same else made_array(a, dtype, **options)


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


METHODS.update(astype=astype, copy=copied)
FUNCTIONS.update({
    np.copy: copied, np.array: made_array, np.asarray: as_array,
    np.zeros_like: _like(0), np.empty_like: _like(0), np.ones_like: _like(1), np.full_like: full_like,
})  # fmt: skip
