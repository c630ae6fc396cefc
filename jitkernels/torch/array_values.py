"""Values of ATen's arguments as operators see them: axes, sizes and numbers, symbolic ones among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.numpy_namespace_proxy import FunctionProxy, has_traced
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Inferred:
    """What torch infers of one result: its dtype, and its extents, where symbolic ones are None."""

    dtype: Any
    shape: tuple[int | None, ...]


def like(value: Any, other: Any) -> Any:
    """A number of the dtype of another value."""
    return other.dtype.type(value)


def axes_of(dim: Any, dimensions: int) -> tuple[int, ...]:
    """Axes as non-negative ints; all of them for None and for an empty list."""
    if dim is None or (isinstance(dim, Sequence) and not len(dim)):
        return tuple(range(dimensions))
    dims = dim if isinstance(dim, Sequence) else (dim,)
    return tuple(int(axis) % max(dimensions, 1) for axis in dims)


def is_empty(shape: Sequence[Any]) -> bool:
    """Whether an extent is 0; torch holds none symbolic that is."""
    return any(type(extent) is int and extent == 0 for extent in shape)


def highest(x: Any, axes: Sequence[int]) -> Any:
    """The largest elements along axes, which are kept; -inf where there are none."""
    least: Any = {"initial": -np.inf} if is_empty([x.shape[axis] for axis in axes]) else {}
    return np.max(x, axis=tuple(axes), keepdims=True, **least)


def created(function: Any, *args: Any, **keywords: Any) -> Any:
    """An array that `numpy.zeros` and the like make, in a trace where a size of it is symbolic."""
    called = FunctionProxy(function) if has_traced((args, keywords)) else function
    return called(*args, **keywords)


def numbers(count: Any) -> Any:
    """The ints below a number, which may be symbolic."""
    return created(np.arange, count)
