"""Casts between element types, those that NumPy lacks included."""

from typing import Any

import numpy as np

from jitkernels.onnx.element_types import COMMON, dtype_of
from jitkernels.onnx.narrow_types import has_narrow, is_narrow, narrowed, widened
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError, is_sizes, materialized


def to_dtype(x: Any, dtype: Any, *, saturate: bool = True) -> Any:
    """An array in another dtype; between types that NumPy lacks by way of those that it has."""
    dtype = np.dtype(dtype)
    if has_narrow(x):
        x = widened(x)
    if is_narrow(dtype):
        return narrowed(x, dtype, saturate=saturate)
    if dtype.name not in COMMON.values() or x.dtype.name not in COMMON.values():
        raise NotServedError("a cast of elements that NumPy lacks")
    return x.astype(dtype)


@operator("Cast", sizes=True, narrow=True)
def cast(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    if is_sizes(x):
        if COMMON.get(to) == "int64":
            return x
        x = materialized(x)
    return to_dtype(x, dtype_of(to), saturate=bool(saturate))


@operator("CastLike", narrow=True)
def cast_like(x: Any, target: Any, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return to_dtype(x, target.dtype, saturate=bool(saturate))


@operator("BitCast", host=True)
def bit_cast(x: Any, *, to: int) -> Any:
    dtype = dtype_of(to)
    if dtype.itemsize != x.dtype.itemsize:
        raise NotServedError("elements of other sizes")
    return np.ascontiguousarray(x).reshape(np.shape(x)).view(dtype)
