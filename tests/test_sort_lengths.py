"""SORT of rows of any length: those that fill a power of two, and those whose last parts are nothing but room."""

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.gen.ordering import SHORT, TOGETHER

LENGTHS = sorted({k * TOGETHER + d for k in (1, 2, 3, 4, 5, 6, 9, 12, 17) for d in (-1, 0, 1, 37)})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [*LENGTHS, SHORT - TOGETHER - 1, SHORT])
def test_rows_are_in_order(n: int, dtype: str) -> None:
    generator = np.random.default_rng(n)
    x = np.stack([
        generator.standard_normal(n),
        generator.integers(-3, 3, n),
        np.arange(n)[::-1],
        np.arange(n),
        np.where(generator.random(n) < 0.3, np.inf, -np.inf),
        np.where(generator.random(n) < 0.3, np.nan, generator.standard_normal(n)),
    ]).astype(dtype)  # fmt: skip
    y = jk.sort(x)
    np.testing.assert_array_equal(y, np.sort(x, axis=-1))
    zeros = np.where(generator.random(n) < 0.5, -0.0, 0.0).astype(dtype)
    assert np.signbit(jk.sort(zeros)).sum() == np.signbit(zeros).sum()
    assert (np.diff(np.signbit(jk.sort(zeros)).astype(int)) <= 0).all()
