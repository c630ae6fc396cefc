"""Rows of one element, served as one row of columns: NumPy's results, with options and any ``out``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hmax": np.max, "hmin": np.min, "hsum": np.sum, "hmean": np.mean, "hvar": np.var, "hargmax": np.argmax,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("rows", [1, 2, 31, 1000])
def test_reductions(rows: int, name: str, dtype: str) -> None:
    function, numpy = getattr(jk, name), FUNCTIONS[name]
    x = np.linspace(-5, 5, rows).astype(dtype)[:, np.newaxis]
    x[rows // 2] = -1
    for value in (x, x.reshape(1, rows, 1), np.repeat(x, 2, axis=1)[:, :1]):
        for _ in range(3):  # Python, then the dispatcher
            got = function(value)
            assert got.shape == value.shape[:-1]
            assert np.array_equal(got, numpy(value, axis=-1))
            out = np.full_like(got, 7)
            assert function(value, out=out) is out
            assert np.array_equal(out, got)


@pytest.mark.parametrize("rows", [1, 2, 31, 1000])
def test_normalizations_of_single_element_rows(rows: int) -> None:
    """And cumulative sums, log-sum-exps and variances."""
    x = np.linspace(-5, 5, rows)[:, np.newaxis]
    for _ in range(3):
        assert np.array_equal(jk.softmax(x), np.ones_like(x))
        assert np.array_equal(jk.cumsum(x), x)
        assert np.allclose(jk.hlogsumexp(x), x[:, 0], rtol=1e-15)
        assert np.isnan(jk.hvar(x, ddof=1)).all()
    x[0] = np.nan
    assert np.isnan(jk.hmax(x)[0])
    assert np.isfinite(jk.hmax(x)[1:]).all()
    assert not jk.hargmax(x).any()
