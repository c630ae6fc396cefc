"""`numpy.insert` of one number, and `numpy.histogram` of equal bins, in compiled functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def assert_as_numpy(function: Callable[..., Any], *arguments: Any) -> None:
    """The same results, or the same error, of the plain and of the compiled function."""
    compiled = jk.jit(function)
    try:
        expected = function(*arguments)
    except Exception as error:  # noqa: BLE001  # whatever NumPy raises
        with pytest.raises(type(error)):
            compiled(*arguments)
        return
    got = compiled(*arguments)
    for one, right in zip(got, expected, strict=True) if isinstance(expected, tuple) else [(got, expected)]:
        assert (one.dtype, one.shape) == (right.dtype, right.shape)
        np.testing.assert_array_equal(one, right)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 17])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "?"])
def test_insert(n: int, dtype: str) -> None:
    x = (3 * np.random.default_rng(n).random((n, 3))).astype(dtype)
    for index in (0, 1, -1, 2, -2, 3, 4):
        for value in (2, 2.5, True, np.float32(7)):
            assert_as_numpy(lambda x, index=index, value=value: np.insert(x, index, value), x[:, 0])
            assert_as_numpy(lambda x, index=index, value=value: np.insert(x, index, value, axis=0), x)
            assert_as_numpy(lambda x, index=index, value=value: np.insert(x, index, value, axis=-1), x.T[::-1])


def test_insert_of_what_a_call_computes() -> None:
    x = np.arange(5.0)
    assert_as_numpy(lambda x: np.cumsum(np.insert(x, 0, x.sum())), x)
    assert_as_numpy(lambda x, index: np.insert(x, index, 1.0), x, 3)
    assert_as_numpy(lambda x: np.insert(x, [1, 2], 1.0), x)
    assert_as_numpy(lambda x: np.insert(x, 1, [1.0, 2.0]), x)
    assert_as_numpy(lambda x: np.insert(x, slice(0, 4, 2), 1.0), x)


def test_insert_at_a_bound_that_a_later_call_breaks() -> None:
    def function(x: Any) -> Any:
        return np.insert(x, 3, 9.0)

    compiled = jk.jit(function)
    for n in (5, 3, 4):
        np.testing.assert_array_equal(compiled(np.ones(n)), function(np.ones(n)))
    with pytest.raises(IndexError):
        compiled(np.ones(2))


def test_compiled_without_numpy() -> None:
    for function in (lambda x: np.insert(x, 0, 0.0), lambda x: np.histogram(x, bins=8, range=(0, 1))[0]):
        assert "0 calls of NumPy" in str(jk.jit(function, strict=True).explain(np.ones(9)))


RANGES = (
    (0, 1),
    (0.1, 0.7),
    (-3, 3.5),
    [0.0, 0.9],
    (0, 256),
    (0.3, 0.3),
    (1, 0),
    (0, np.inf),
    None,
    (0.1, 0.1 + 1e-16),
)


@pytest.mark.parametrize("limits", RANGES)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?"])
def test_histogram(limits: Any, dtype: str) -> None:
    for n in (0, 1, 7, 1000):
        x = np.random.default_rng(n).random(n) * 1.2 - 0.1
        x[::5] = np.round(x[::5], 1)  # edges themselves
        for values in (x.astype(dtype), x.astype(dtype)[::3], np.tile(x.astype(dtype), (3, 1))):
            for bins in (1, 7, 10, 256):
                assert_as_numpy(lambda x, bins=bins: np.histogram(x, bins, limits), values)


def test_histogram_options() -> None:
    x = np.random.default_rng(0).random(100)
    x[3] = np.nan
    assert_as_numpy(lambda x: np.histogram(x, 7, (0, 1)), x)
    assert_as_numpy(lambda x: np.histogram(x, bins=7, range=(0, 1), density=True), x)
    assert_as_numpy(lambda x: np.histogram(x, bins=7, range=(0, 1), weights=x), np.arange(9.0) / 9)
    assert_as_numpy(lambda x: np.histogram(x, bins=[0, 0.2, 1]), np.arange(9.0) / 9)
    assert_as_numpy(lambda x, bins, low: np.histogram(x, bins, (low, 1.0)), x, 7, 0.25)


def test_edges_belong_to_the_caller() -> None:
    compiled = jk.jit(lambda x: np.histogram(x, 4, (0, 1)))
    for _ in range(3):
        _, edges = compiled(np.ones(3))
        np.testing.assert_array_equal(edges, np.linspace(0, 1, 5))
        edges[:] = 9
