"""Values of ATen's arguments as operators see them: axes, sizes and numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

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


def as_array(value: Any) -> Any:
    """A result as an array: operations of 0-dimensional arrays give numbers."""
    return value if hasattr(value, "shape") else np.asarray(value)
