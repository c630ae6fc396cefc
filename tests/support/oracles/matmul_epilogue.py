"""The oracle of MATMUL_EPILOGUE."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, WIDE, oracle, sigmoid

erfc = np.frompyfunc(math.erfc, 1, 1)
"""In double, whose error is far below the error bound of a sum."""


@oracle
def matmul_epilogue(attr: Any, a: AnyArray, b: AnyArray, bias: Any = None) -> list[AnyArray]:
    narrow: Any = np.float64 if attr.dtype == "float32" else WIDE  # in long double NumPy uses its own loop, no BLAS
    left: Any = (a.T if attr.trans_a else a).astype(narrow)
    right: Any = (b.T if attr.trans_b else b).astype(narrow)
    z = (left @ right).astype(WIDE)
    z = z if bias is None else z + bias
    if attr.activation == "gelu":
        return [z * erfc(-z / np.sqrt(WIDE(2))).astype(WIDE) / 2]
    return [z * sigmoid(z) if attr.activation == "silu" else ACTIVATIONS[attr.activation](z)]
