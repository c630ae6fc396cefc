"""The manipulation, searching, set and sorting functions of the Array API standard, by NumPy and by kernels."""

from typing import Any

import numpy as np

from jitkernels.xp.array_object import NamespaceArray
from jitkernels.xp.dispatch import by_numpy, elements_of, is_traced, kernel_named, new_array, wrapped

KERNEL_CHARACTERS = "fd"
"""Type characters of the dtypes that kernels have."""
NAMES = (
    "broadcast_arrays", "broadcast_to", "concat", "expand_dims", "flip", "isin", "matrix_transpose", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "searchsorted", "squeeze", "stack", "take", "take_along_axis",
    "tile", "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack",
)  # fmt: skip
"""What `numpy` has by the standard's name and meaning."""
KERNELS = {"argmax": "hargmax", "argsort": "argsort", "sort": "sort"}
"""Kernels that compute functions of float32 and float64, and those that sort integers, too."""
_argmax, _argsort, _sort = (kernel_named(KERNELS[name]) for name in ("argmax", "argsort", "sort"))


def _has_kernel(x: Any) -> bool:
    return _is_array(x) and x.dtype.char in KERNEL_CHARACTERS


def _is_ordered_by_kernel(x: Any) -> bool:
    return _is_array(x) and (x.dtype.char in KERNEL_CHARACTERS or x.dtype.kind in "iub")


def _is_array(x: Any) -> bool:
    """Whether it is an array, not traced, with elements along an axis."""
    return not is_traced(x) and isinstance(x, np.ndarray) and x.ndim > 0 and x.size > 0


def argmax(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The indices of the largest elements along an axis, the first of equal ones."""
    elements = elements_of(x)
    if _has_kernel(elements) and not keepdims and (axis is not None or elements.ndim == 1):
        return wrapped(_argmax()(elements, axis=-1 if axis is None else axis))
    return wrapped(np.argmax(elements, axis=axis, keepdims=keepdims))


def argmin(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The indices of the smallest elements along an axis, the first of equal ones."""
    return wrapped(np.argmin(elements_of(x), axis=axis, keepdims=keepdims))


def nonzero(x: Any, /) -> tuple[NamespaceArray, ...]:
    """For each axis, the indices of the elements that are not zero."""
    if not x.ndim:
        raise ValueError("nonzero: expected at least 1 dimension, got 0")
    return tuple(map(wrapped, np.nonzero(elements_of(x))))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> NamespaceArray:
    """The indices that sort along an axis; with `descending` equal elements keep their order, too."""
    elements = elements_of(x)
    order = np.flip(elements, axis) if descending else elements
    if _is_ordered_by_kernel(order):
        order = _argsort()(order, axis=axis)
    else:
        order = np.argsort(order, axis=axis, stable=stable)
    if not descending:
        return wrapped(order)  # type: ignore[no-any-return]
    order = np.flip(order, axis)
    return new_array(elements.shape[axis] - 1 - order)  # type: ignore[no-any-return]


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> NamespaceArray:
    """The elements in ascending or descending order along an axis."""
    elements = elements_of(x)
    # Zeros of either sign are equal: a stable order keeps theirs, the kernel puts negative ones first.
    if _is_ordered_by_kernel(elements) and not (_has_kernel(elements) and stable and (elements == 0).any()):
        result = _sort()(elements, axis=axis).astype(elements.dtype, copy=False)
    else:
        result = np.sort(elements, axis=axis, stable=stable)
    return new_array(np.flip(result, axis) if descending else result)  # type: ignore[no-any-return]


FUNCTIONS = {name: by_numpy(name, getattr(np, name)) for name in NAMES}
FUNCTIONS |= {one.__name__: one for one in (argmax, argmin, nonzero, argsort, sort)}
