"""`numpy.searchsorted` and `numpy.digitize` of numbers and arrays: compiled binary searches, also in loops."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

RNG = np.random.default_rng(4)
VALUES = np.array([0.2, -1.0, 0.5, 3.0, np.nan, 0.3, np.inf, 0.5])
TABLES = [np.array([0.5]), np.sort(RNG.random(5)), np.array([0.2, 0.3, 0.3, 0.5, 0.5, np.inf]), np.arange(4)]
SHAPES = [(), (8,), (2, 4), (2, 2, 2)]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_searches(table: Any, shape: tuple[int, ...], side: Any) -> None:
    values = VALUES.reshape(shape) if shape else VALUES[2]

    def search(table: Any, values: Any) -> Any:
        return np.searchsorted(table, values, side=side)

    def bins(table: Any, values: Any) -> Any:
        return np.digitize(values, table, right=side == "right")

    for function in (search, bins):
        compiled = jk.jit(function, strict=True)
        got, expected = compiled(table, values), function(table, values)
        assert (np.shape(got), got.dtype) == (np.shape(expected), expected.dtype)
        np.testing.assert_array_equal(got, expected)
        assert "0 calls of NumPy" in str(compiled.explain())


def test_bins_in_other_orders() -> None:
    compiled = jk.jit(lambda values, bins: np.digitize(values, bins))
    for bins in (np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])):
        np.testing.assert_array_equal(compiled(VALUES, bins), np.digitize(VALUES, bins))
    with pytest.raises(ValueError, match="monotonically"):
        compiled(VALUES, np.array([1.0, 3.0, 2.0]))


def test_rows() -> None:
    """Rows of a matrix, each with bins of its own."""

    def run(x: Any, bins: Any) -> Any:
        result = np.zeros(x.shape, np.int64)
        for i in range(x.shape[0]):
            result[i] = np.digitize(x[i], bins[i])
            result[i, 0] += np.searchsorted(bins[i], x[i, 1])
        return result

    x, bins = RNG.random((20, 9)), np.sort(RNG.random((20, 4)), axis=1)
    compiled = jk.jit(run, strict=True)
    np.testing.assert_array_equal(compiled(x, bins), run(x, bins))
    assert "0 calls of NumPy" in str(compiled.explain())
