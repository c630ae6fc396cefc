"""What replacements ask of their arguments: exact arrays of NumPy, floats of single and double precision, C order."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.api.jit import jit

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
FLOATS = (SINGLE, DOUBLE)


def is_plain(x: Any, dtypes: Sequence[Any] = FLOATS) -> bool:
    """Return whether `x` is a NumPy array itself, and no subclass, of one of the dtypes, and aligned."""
    return type(x) is np.ndarray and x.dtype in dtypes and x.flags.aligned


def is_matrix(x: Any, dtypes: Sequence[Any] = FLOATS) -> bool:
    """Return whether `x` is a plain matrix in C order with at least one element."""
    return is_plain(x, dtypes) and x.ndim == 2 and x.size > 0 and x.flags.c_contiguous


def are_matrices(x: Any, y: Any, dtypes: Sequence[Any] = FLOATS) -> bool:
    """Return whether two plain matrices have the same dtype and number of columns."""
    return is_matrix(x, dtypes) and (y is x or is_matrix(y, dtypes)) and x.dtype == y.dtype and x.shape[1] == y.shape[1]


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy, and no bool."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


@jit
def _sum(x: Any) -> Any:
    return x.sum()


def are_finite(x: AnyArray) -> bool:
    """Return whether a sum, and so every element, is finite."""
    with np.errstate(all="ignore"):
        return math.isfinite(_sum(x))
