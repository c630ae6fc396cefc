"""`numpy.repeat` with a count for each element: compiled, for the number of copies of a call."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def repeated(a: Any, counts: Any) -> Any:
    return np.repeat(a, counts)


def rows_of(indptr: Any) -> Any:
    """The row of each element of a sparse matrix."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def method(a: Any, counts: Any) -> Any:
    return a.repeat(counts, axis=0) * 2


@pytest.mark.parametrize("counts_dtype", [np.int64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.bool_, np.complex64])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 100])
def test_values(size: int, dtype: Any, counts_dtype: Any) -> None:
    rng = np.random.default_rng(size)
    a = (5 * rng.random(size)).astype(dtype)
    for function in (repeated, method):
        compiled = jk.jit(function)
        for counts in (rng.integers(0, 5, size), np.ones(size), np.zeros(size), np.arange(size) == size - 1):
            for given in (a, np.repeat(a, 2)[::2]):
                number = counts.astype(counts_dtype)
                one, right = compiled(given, number), function(given, number)
                assert one.dtype == right.dtype
                np.testing.assert_array_equal(one, right)


def test_no_call_of_numpy() -> None:
    indptr = np.array([0, 3, 3, 4, 9])
    compiled = jk.jit(rows_of, strict=True)
    np.testing.assert_array_equal(compiled(indptr), rows_of(indptr))
    assert "0 calls of NumPy" in str(compiled.explain(indptr))


@pytest.mark.parametrize("counts", [[1, -1, 2], [-3, 2, 2], [2**62, 2**62, 2**63 - 1]])
def test_errors(counts: list[int]) -> None:
    a, number = np.arange(3.0), np.array(counts)
    with pytest.raises(ValueError, match="negative") as expected:
        np.repeat(a, number)
    with pytest.raises(ValueError, match="negative") as found:
        jk.jit(repeated)(a, number)
    assert str(found.value) == str(expected.value)
    with pytest.raises(TypeError):
        jk.jit(repeated)(a, number + 0.5)


def test_counts_that_are_broadcast() -> None:
    a = np.arange(4)
    np.testing.assert_array_equal(jk.jit(repeated)(a, np.array([2])), np.repeat(a, 2))
