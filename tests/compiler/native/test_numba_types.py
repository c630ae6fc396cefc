"""Types of numba in compiled functions, as dtypes and as functions that convert numbers."""

from typing import Any

import numba
import numpy as np
from numba import uint32

import jitkernels as jk


def with_dtypes(x: Any) -> Any:
    result = np.zeros(len(x), dtype=uint32)
    for i in range(len(x)):
        result[i] = numba.int64(x[i]) + uint32(i)
    return result, np.empty(0, numba.float32)


def test_types_of_numba() -> None:
    x = np.arange(10) * 1.5
    numbers, empty = jk.jit(with_dtypes, strict=True)(x)
    np.testing.assert_array_equal(numbers, x.astype(np.int64) + np.arange(10))
    assert (numbers.dtype, empty.dtype) == (np.uint32, np.float32)
