"""Dtypes of torch and of NumPy."""

from typing import Any

import numpy as np
import torch

NUMPY_DTYPES = {
    torch.float32: np.dtype("float32"), torch.float64: np.dtype("float64"), torch.float16: np.dtype("float16"),
    torch.int8: np.dtype("int8"), torch.int16: np.dtype("int16"), torch.int32: np.dtype("int32"),
    torch.int64: np.dtype("int64"), torch.uint8: np.dtype("uint8"), torch.bool: np.dtype("bool"),
    torch.complex64: np.dtype("complex64"), torch.complex128: np.dtype("complex128"),
}  # fmt: skip
"""The dtypes that NumPy has."""


def numpy_dtype(dtype: Any) -> Any:
    """The dtype of NumPy for one of torch; None where NumPy has none."""
    return NUMPY_DTYPES.get(dtype)
