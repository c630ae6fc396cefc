"""The creation functions of the Array API standard."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema import foreign_arrays
from jitkernels.errors import ArgumentError
from jitkernels.xp.array_object import NamespaceArray, check_device
from jitkernels.xp.dispatch import elements_of, is_traced, wrapped
from jitkernels.xp.elementwise_functions import cast


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> NamespaceArray:
    """An array of `obj`: an array of any library, a number, or a nested sequence of numbers.

    Arrays share their memory with the result unless they are copied, which ``copy=False`` forbids; what others write to
    it changes the result. Raises ArgumentError for a copy that is forbidden, ArgumentTypeError for memory of devices.
    """
    check_device(device)
    if is_traced(obj):
        return obj if dtype is None and not copy else cast(obj, obj.dtype if dtype is None else np.dtype(dtype))  # type: ignore[no-any-return]
    if isinstance(obj, NamespaceArray):
        needs_cast = dtype is not None and obj.dtype != np.dtype(dtype)
        if needs_cast and copy is False:
            raise ArgumentError(f"copy: expected True or None for a conversion of {obj.dtype} to {np.dtype(dtype)}")
        if needs_cast:
            return cast(obj, np.dtype(dtype))  # type: ignore[no-any-return]
        return NamespaceArray(obj._elements().copy(), False) if copy else obj
    value = foreign_arrays.as_array(obj) if foreign_arrays.is_foreign(obj) else elements_of(obj)
    array = np.array(value, dtype, copy=copy) if isinstance(value, np.ndarray) else _of_values(value, dtype, copy)
    return NamespaceArray(array, isinstance(value, np.ndarray) and np.may_share_memory(array, value))


def _of_values(value: Any, dtype: Any, copy: bool | None) -> Any:
    if copy is False:
        raise ArgumentError("copy: expected True or None for Python numbers, got False")
    array = np.array(value, dtype)
    if array.dtype == object:
        raise OverflowError(f"expected numbers of a dtype, got {value!r:.80}")
    return array


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> NamespaceArray:
    """An array that shares the memory of another one by DLPack."""
    check_device(device)
    if isinstance(x, NamespaceArray):
        return asarray(x, copy=copy)
    return NamespaceArray(np.from_dlpack(x, device=device, copy=copy))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """Numbers from `start` to `stop`, without it, in steps."""
    check_device(device)
    numbers: Any = np.arange
    bounds = (start, stop) if stop is not None else (0, start)
    return NamespaceArray(numbers(*bounds, step, dtype=dtype), False)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of a shape, with any elements."""
    check_device(device)
    return NamespaceArray(np.empty(shape, dtype), False)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of zeros."""
    check_device(device)
    return NamespaceArray(np.zeros(shape, dtype), False)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of ones."""
    check_device(device)
    return NamespaceArray(np.ones(shape, dtype), False)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of one number."""
    check_device(device)
    return NamespaceArray(np.full(shape, elements_of(fill_value), dtype), False)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of the shape of another, with any elements."""
    if is_traced(x):
        return np.empty_like(x, dtype)  # type: ignore[no-any-return]
    return empty(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of zeros of the shape of another."""
    if is_traced(x):
        return np.zeros_like(x, dtype)  # type: ignore[no-any-return]
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of ones of the shape of another."""
    if is_traced(x):
        return np.ones_like(x, dtype)  # type: ignore[no-any-return]
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> NamespaceArray:
    """An array of one number of the shape of another."""
    if is_traced(x):
        return np.full_like(x, elements_of(fill_value), dtype)  # type: ignore[no-any-return]
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> NamespaceArray:
    """Ones on the k-th diagonal, zeros elsewhere."""
    check_device(device)
    return NamespaceArray(np.eye(n_rows, n_cols, k, np.float64 if dtype is None else dtype), False)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> NamespaceArray:
    """Evenly spaced numbers from `start` to `stop`."""
    check_device(device)
    return NamespaceArray(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint), False)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[NamespaceArray]:
    """Coordinate arrays of a grid from coordinate vectors."""
    return [*map(wrapped, np.meshgrid(*map(elements_of, arrays), indexing=indexing))]  # type: ignore[call-overload]


def tril(x: Any, /, *, k: int = 0) -> NamespaceArray:
    """The elements on and below the k-th diagonal, zeros elsewhere."""
    return wrapped(np.tril(elements_of(x), k))  # type: ignore[no-any-return]


def triu(x: Any, /, *, k: int = 0) -> NamespaceArray:
    """The elements on and above the k-th diagonal, zeros elsewhere."""
    return wrapped(np.triu(elements_of(x), k))  # type: ignore[no-any-return]
