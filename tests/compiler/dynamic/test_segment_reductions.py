"""``numpy.ufunc.reduceat`` in compiled functions: segments of any length, empty ones, and indices outside."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import TracingError

UFUNCS = [np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or]
DTYPES = ["float32", "float64", "int8", "int32", "int64", "uint8"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_segments(ufunc: np.ufunc, dtype: str) -> None:
    """Indices in any order: where the next one is not behind, the segment is one element."""
    compiled = jk.jit(lambda x, begins: ufunc.reduceat(x, begins), strict=True)
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 17, 33):
        x = (rng.random(size) * 6 - 1).astype(dtype)
        for begins in (
            rng.integers(0, size, 4), np.arange(size), np.zeros(3, np.int64), np.array([size - 1, 0], np.int32),
        ):  # fmt: skip
            expected, got = ufunc.reduceat(x, begins), compiled(x, begins)
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_strided_and_special_values() -> None:
    compiled = jk.jit(lambda x, begins: np.maximum.reduceat(x, begins), strict=True)
    x = np.array([1.0, np.nan, -np.inf, 3.0, np.inf, -0.0, 2.0, 5.0])
    for values in (x, x[::2], x[::-1]):
        begins = np.array([0, 1, 1, 2])
        np.testing.assert_array_equal(compiled(values, begins), np.maximum.reduceat(values, begins))


@pytest.mark.parametrize("outside", [-1, 5, 2**40])
def test_indices_outside_raise(outside: int) -> None:
    compiled = jk.jit(lambda x, begins: np.add.reduceat(x, begins) + 1)
    x = np.arange(5.0)
    np.testing.assert_array_equal(compiled(x, np.array([0, 2])), [2.0, 10.0])
    with pytest.raises(IndexError, match="out-of-bounds"):
        compiled(x, np.array([0, outside]))


def test_rows_of_csr_matrices() -> None:
    """Inside a loop as well, and of an expression."""

    def iterate(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
        for _ in range(3):
            x = np.add.reduceat(data * x[indices], indptr[:-1])
        return x

    compiled = jk.jit(iterate, strict=True)
    rng = np.random.default_rng(1)
    for rows in (1, 3, 40):
        counts = rng.integers(1, 6, rows)
        indptr = np.concatenate(([0], np.cumsum(counts)))
        data, indices, x = rng.random(indptr[-1]), rng.integers(0, rows, indptr[-1]), rng.random(rows)
        np.testing.assert_allclose(compiled(data, indices, indptr, x), iterate(data, indices, indptr, x), rtol=1e-12)


def test_other_forms_are_refused() -> None:
    x = np.ones((3, 4))
    for function, reason in (
        (lambda x, i: np.add.reduceat(x, i), "2 dimensions"),
        (lambda x, i: np.add.reduceat(x[0], i, dtype=np.float32), "options"),
        (lambda x, i: np.arctan2.reduceat(x[0], i), "arctan2.reduceat"),
        (lambda x, i: np.add.reduceat(x[0], i * 1.0), "vector of ints"),
    ):
        with pytest.raises(TracingError, match=reason):
            jk.jit(function, strict=True)(x, np.array([0, 2]))
