"""Norms of vectors of computed length."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, DynamicArray
from jitkernels.compiler.capture.numpy.select_clip_predicates import is_traced_order
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A002  # as NumPy's
    """``numpy.linalg.norm`` of a vector."""
    if not isinstance(x, DynamicArray) or x.ndim != 1 or axis not in (None, 0, -1) or keepdims:
        raise UnknownSizeError("numpy.linalg.norm of an array of computed length, with options")
    if type(ord) is SymInt:
        ord = int(ord)  # noqa: A001  # guards the order
    array: Any = x if x.dtype.kind == "f" else x.astype(np.float64)
    if ord is None or (type(ord) in (int, float) and ord == 2):
        return np.sqrt(np.sum(array * array))
    size: Any = np.abs(array)
    if is_traced_order(ord):
        return np.power(np.sum(np.power(size, ord)), 1 / ord)
    if type(ord) not in (int, float):
        raise UnknownSizeError("numpy.linalg.norm of an array of computed length, by this order")
    if abs(ord) == np.inf:
        return (np.max if ord > 0 else np.min)(size)
    if ord == 0:
        return np.sum((array != 0).astype(array.dtype))
    if ord == 1:
        return np.sum(size)
    return np.power(np.sum(np.power(size, ord)), array.dtype.type(1 / ord))


FUNCTIONS[np.linalg.norm] = norm
