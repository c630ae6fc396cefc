"""Functions of ``@numba.vectorize`` without types in compiled functions, against their Python functions."""

from typing import Any

import numpy as np
from numba import vectorize

import jitkernels as jk


def _toward_zero(x: Any) -> Any:
    if x >= 0:
        return np.floor(x)
    return np.ceil(x)


toward_zero: Any = vectorize(_toward_zero)
halved: Any = vectorize(lambda x, y: (x + y) / 2)


def of_numbers(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total += toward_zero(x[i]) + halved(x[i], i)
    return total, int(toward_zero((len(x) + 1) / 2.0))


def test_ufuncs_of_numbers_and_arrays() -> None:
    x = np.random.default_rng(0).normal(0, 3, 40)
    total, number = jk.jit(of_numbers, strict=True)(x)
    np.testing.assert_allclose(total, np.trunc(x).sum() + ((x + np.arange(40)) / 2).sum())
    assert number == 20
    np.testing.assert_allclose(jk.jit(lambda x: halved(x, 2.0), strict=True)(x), (x + 2) / 2)
