"""`ndarray.strides` and `numpy.lib.stride_tricks.as_strided`, against NumPy."""

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import jitkernels as jk


def windows_of_rows(x: Any, size: int, step: int) -> Any:
    first, second = x.strides
    shape = len(x), (x.shape[1] - size + step) // step, size // 1
    return as_strided(x, shape=shape, strides=(first, step * second, second))


def windows_of_a_vector(x: Any, size: int) -> Any:
    (stride,) = x.strides
    view = as_strided(x, (len(x) - size + 1, size), (stride, stride))
    return view.mean(axis=1), np.copy(view), x.reshape(-1, 1).strides


def windows_in_a_loop(x: Any, size: int) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        row = x[i]
        stride = row.strides[0]
        out[i] = (as_strided(row, (len(row) - size + 1, size), (stride, stride)) ** 2).sum()
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_views_by_strides(dtype: str) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (5, 40)).astype(dtype)
    rows = jk.jit(windows_of_rows, strict=True)
    for size, step in ((8, 3), (8, 1), (10, 10)):
        np.testing.assert_array_equal(rows(x, size, step), windows_of_rows(x, size, step))
    for function in (windows_of_a_vector, windows_in_a_loop):
        array = x[0].copy() if function is windows_of_a_vector else x
        for size in (3, 7):
            for one, other in zip(jk.jit(function, strict=True)(array, size), function(array, size), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_views_beyond_the_array_are_numpys() -> None:
    padded = np.arange(40.0)
    report = jk.jit(lambda x: as_strided(x, (12, 3), (8, 8)).sum()).explain(padded[:10])
    assert "as_strided" in str(report)
