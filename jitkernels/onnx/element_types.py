"""Element types: numbers and names of ONNX's, and NumPy's dtypes."""

from typing import Any

import numpy as np

COMMON = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip
"""NumPy's names of ``TensorProto.DataType``, for the types that compiled code has."""


def dtype_of(number: int) -> Any:
    """The dtype of a ``TensorProto.DataType``."""
    if number in COMMON:
        return np.dtype(COMMON[number])
    from onnx import helper

    return np.dtype(helper.tensor_dtype_to_np_dtype(number))
