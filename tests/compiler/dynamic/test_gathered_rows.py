"""Rows of a matrix at computed bounds or indices, in products with vectors and in sums, as in code for CSR matrices."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.errors import TracingError


def products(values: Any, indices: Any, indptr: Any, matrix: Any) -> Any:
    result = np.zeros((len(indptr) - 1, matrix.shape[1]), matrix.dtype)
    for i in range(len(indptr) - 1):
        begin, end = indptr[i], indptr[i + 1]
        result[i] = values[begin:end] @ matrix[indices[begin:end]]
    return result


def sums(values: Any, indices: Any, indptr: Any, matrix: Any) -> Any:
    result = np.zeros((len(indptr) - 1, matrix.shape[1]), matrix.dtype)
    for i in range(len(indptr) - 1):
        result[i] = matrix[indices[indptr[i] : indptr[i + 1]]].sum(axis=0) + values[0]
    return result


def slices(values: Any, indices: Any, indptr: Any, matrix: Any) -> Any:
    result = np.zeros((len(indptr) - 1, matrix.shape[1]), matrix.dtype)
    for i in range(len(indptr) - 1):
        begin, end = indices[i] // 2, indices[i] // 2 + indptr[i] % 3
        rows = matrix[begin:end]
        result[i] = values[begin:end] @ rows + np.sum(rows, axis=0)
    return result


def case(rows: int, columns: int, dtype: str, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(rng.integers(0, 5, rows))))
    count = max(int(indptr[-1]), rows + 4)
    matrix = rng.normal(size=(rows + 4, columns)).astype(dtype)
    return rng.normal(size=count).astype(dtype), rng.integers(0, rows, count), indptr, matrix


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [products, sums, slices], ids=lambda function: function.__name__)
def test_rows(function: Any, dtype: str) -> None:
    """Rows without elements give zeros; matrices in Fortran order and parts of others are read as they are."""
    compiled = jk.jit(function, strict=True)
    for rows, columns in ((1, 1), (2, 1), (5, 3), (40, 17), (7, 33)):
        values, indices, indptr, matrix = case(rows, columns, dtype, rows)
        for form in (matrix, np.asfortranarray(matrix), np.repeat(matrix, 2, axis=1)[:, ::2]):
            expected, got = (one(values, indices, indptr, form) for one in (function, compiled))
            assert got.dtype == expected.dtype
            np.testing.assert_allclose(got, expected, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-5)


def test_indices_outside_raise() -> None:
    compiled = jk.jit(products)
    values, indices, indptr, matrix = case(5, 3, "float64", 1)
    indices[indptr[-1] - 1] = len(matrix)
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(values, indices, indptr, matrix)


def test_negative_indices_count_from_the_end() -> None:
    values, indices, indptr, matrix = case(5, 3, "float64", 2)
    np.testing.assert_allclose(
        jk.jit(products, strict=True)(values, -1 - indices, indptr, matrix),
        products(values, -1 - indices, indptr, matrix),
        rtol=1e-12,
    )


def test_a_matrix_that_changes_before_rows_are_read() -> None:
    """NumPy has copied the rows by then: the function breaks, and results are NumPy's."""

    def function(values: Any, indices: Any, indptr: Any, matrix: Any) -> Any:
        rows = matrix[indices[indptr[0] : indptr[1]]]
        matrix[...] = 0.0
        return values[indptr[0] : indptr[1]] @ rows

    values, indices, indptr, matrix = case(5, 3, "float64", 3)
    indptr[1] = 4
    expected = function(values, indices, indptr, matrix.copy())
    for _ in range(3):
        np.testing.assert_allclose(jk.jit(function)(values, indices, indptr, matrix.copy()), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda matrix, indices, counts: np.exp(matrix[indices[: counts[0]]]),
        lambda matrix, indices, counts: matrix[indices[: counts[0]]][0],
        lambda matrix, indices, counts: matrix[indices[: counts[0]]].max(axis=0),
        lambda matrix, indices, counts: matrix[indices[: counts[0]]].sum(),
        lambda matrix, indices, counts: matrix[indices[: counts[0]]] @ matrix[0],
        lambda matrix, indices, counts: np.ones((5, 2)) @ matrix[indices[: counts[0]]],
    ],
)
def test_other_uses_of_rows_are_refused(function: Any) -> None:
    arguments = np.arange(12.0).reshape(4, 3), np.array([3, 1, 0]), np.array([2])
    with pytest.raises(TracingError, match=r"computed (number|length)|gathered at a slice|of type GatheredRows"):
        jk.jit(function, strict=True)(*arguments)
    np.testing.assert_allclose(jk.jit(function)(*arguments), function(*arguments))
