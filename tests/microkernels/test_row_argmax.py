"""HARGMAX of long rows and of few columns: partial results, overlapping steps, ties, infinities and NaN."""

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.gen.reduction import MAX_TRACED_ROW, MAXIMUM_ELEMENTS, MIN_FEW_COLUMN_ELEMENTS

LENGTHS = (
    MAX_TRACED_ROW + 1,
    100,
    127,
    MAXIMUM_ELEMENTS - 1,
    MAXIMUM_ELEMENTS,
    MAXIMUM_ELEMENTS + 1,
    MAXIMUM_ELEMENTS + 130,
    3 * MAXIMUM_ELEMENTS + 5,
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", LENGTHS)
def test_ties_resolve_to_the_first_maximum(n: int, dtype: str) -> None:
    generator = np.random.default_rng(n)
    x = generator.integers(-3, 3, (7, n)).astype(dtype)
    x[1] = -np.inf
    x[2, n - 1] = np.inf
    x[3, [n // 2, n - 1]] = np.nan
    x[4] = np.where(generator.random(n) < 0.5, -0.0, 0.0)
    x[5], x[5, n - 2 :] = -1, np.nan
    x[6], x[6, -1] = 0, 1
    assert jk.hargmax(x).tolist() == np.argmax(x, axis=-1).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_maxima_at_every_position(dtype: str) -> None:
    n = MAXIMUM_ELEMENTS + 70
    x = np.zeros((n, n), dtype)
    np.fill_diagonal(x, 1)
    assert jk.hargmax(x).tolist() == list(range(n))
    np.fill_diagonal(x, np.nan)
    assert jk.hargmax(x).tolist() == list(range(n))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_columns(dtype: str) -> None:
    """As many as a vector holds, fewer and more; rows shorter than a vector, and remainders."""
    generator = np.random.default_rng(0)
    for remain in (*range(2, 18), 31, 33, 64):
        for n in (1, 2, MIN_FEW_COLUMN_ELEMENTS - 1, MIN_FEW_COLUMN_ELEMENTS, MIN_FEW_COLUMN_ELEMENTS + 1, 50, 139):
            x = generator.integers(-3, 3, (6, n, remain)).astype(dtype)
            x[1] = -np.inf
            x[2][generator.random((n, remain)) < 0.02] = np.nan
            x[3, -1] = 9
            x[4] = np.where(generator.random((n, remain)) < 0.5, -0.0, 0.0)
            x[5, -1, -1] = np.nan
            assert np.array_equal(jk.hargmax(x, axis=1), np.argmax(x, axis=1)), (remain, n)
