"""The statistical and utility functions of the Array API standard. Those of large arrays are fused into expressions."""

from typing import Any

import numpy as np

from jitkernels.xp.array_object import NamespaceArray
from jitkernels.xp.dispatch import elements_of, is_traced, kernel_named, new_array, record, wrapped

KERNELS = {"cumulative_sum": "cumsum"}
"""Kernels that compute functions of float32 and float64."""
FUSED = ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var")
"""Reductions, which are recorded."""
_cumsum = kernel_named(KERNELS["cumulative_sum"])
KERNEL_CHARACTERS = "fd"
"""Type characters of the dtypes that kernels have."""


def _reduce(function: Any, x: Any, axis: Any, keepdims: bool, result_dtype: Any, **keywords: Any) -> Any:
    """A reduction along axes, recorded for a large array."""
    if type(x) is not NamespaceArray or x.is_small or not x.size:
        elements = x._elements() if type(x) is NamespaceArray else x
        return wrapped(function(elements, axis=axis, keepdims=keepdims, **keywords))
    shape = _reduced_shape(x.shape, axis, keepdims)
    static = ("axis", axis), ("keepdims", keepdims), *keywords.items()
    return record(function, (x,), [x._operand()], static, np.dtype(result_dtype), shape)


def _reduced_shape(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    axes = range(len(shape)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, len(shape))
    return tuple([1 if i in axes else n for i, n in enumerate(shape) if keepdims or i not in axes])


def _accumulated(dtype: Any) -> Any:
    """The default dtype of sums and products."""
    if dtype.kind in "bi":
        return np.promote_types(dtype, np.int64)
    return np.promote_types(dtype, np.uint64) if dtype.kind == "u" else dtype


def _floating(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _real(dtype: Any) -> Any:
    """The dtype of variances."""
    return np.dtype(dtype.char.lower()) if dtype.kind == "c" else _floating(dtype)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001  # a name of the standard
    """The largest elements along axes."""
    return _reduce(np.max, x, axis, keepdims, x.dtype)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001
    """The smallest elements along axes."""
    return _reduce(np.min, x, axis, keepdims, x.dtype)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The arithmetic mean along axes."""
    return _reduce(np.mean, x, axis, keepdims, _floating(x.dtype))


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product along axes."""
    given = _accumulated(x.dtype) if dtype is None else np.dtype(dtype)
    return _reduce(np.prod, x, axis, keepdims, given, dtype=given)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The standard deviation along axes: divided by the number of elements less `correction`."""
    return _reduce(np.std, x, axis, keepdims, _real(x.dtype), ddof=correction)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:  # noqa: A001
    """The sum along axes."""
    given = _accumulated(x.dtype) if dtype is None else np.dtype(dtype)
    return _reduce(np.sum, x, axis, keepdims, given, dtype=given)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """The variance along axes: divided by the number of elements less `correction`."""
    return _reduce(np.var, x, axis, keepdims, _real(x.dtype), ddof=correction)


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001
    """Whether all elements along axes are true."""
    return _reduce(np.all, x, axis, keepdims, bool)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A001
    """Whether any element along axes is true."""
    return _reduce(np.any, x, axis, keepdims, bool)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running sums along an axis."""
    elements = elements_of(x)
    is_plain = dtype is None and not include_initial and not is_traced(elements) and elements.ndim and elements.size
    if is_plain and elements.dtype.char in KERNEL_CHARACTERS and (axis is not None or elements.ndim == 1):
        return new_array(_cumsum()(elements, axis=-1 if axis is None else axis))
    return wrapped(np.cumulative_sum(elements, axis=axis, dtype=dtype, include_initial=include_initial))


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running products along an axis."""
    return wrapped(np.cumulative_prod(elements_of(x), axis=axis, dtype=dtype, include_initial=include_initial))


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """The differences of neighbours along an axis, `n` times."""
    ends = {name: elements_of(one) for name, one in (("prepend", prepend), ("append", append)) if one is not None}
    return wrapped(np.diff(elements_of(x), n=n, axis=axis, **ends))


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of elements along axes that are not zero."""
    count = np.count_nonzero(elements_of(x), axis=axis, keepdims=keepdims)
    return new_array(np.int64(count) if type(count) is int else count)
