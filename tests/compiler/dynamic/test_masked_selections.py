"""Reductions, in loops, of elements that a mask of computed length selects."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def total(chosen: Any) -> Any:
    return chosen.sum()


def product(chosen: Any) -> Any:
    return np.prod(chosen)


def truth(chosen: Any) -> Any:
    return chosen.any() + 2.0 * np.all(chosen)


def mean(chosen: Any) -> Any:
    return chosen.mean() if chosen.size else 0.0


def largest(chosen: Any) -> Any:
    return float(chosen.max()) if len(chosen) else -1.0


def least(chosen: Any) -> Any:
    return float(np.min(chosen)) if chosen.size > 0 else -1.0


def count(chosen: Any) -> Any:
    return chosen.size


REDUCTIONS = (total, product, truth, mean, largest, least, count)


def rows_of(reduction: Any) -> Any:
    """A function of the values of each row of a CSR matrix in the columns up to the row."""

    def function(values: Any, indices: Any, indptr: Any) -> Any:
        result = np.zeros(len(indptr) - 1)
        for i in range(len(indptr) - 1):
            columns = indices[indptr[i] : indptr[i + 1]]
            result[i] = reduction(values[indptr[i] : indptr[i + 1]][columns <= i])
        return result

    return function


def case(rows: int, dtype: str, seed: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(rng.integers(0, 6, rows))))
    return (rng.normal(size=indptr[-1]) * 3).astype(dtype), rng.integers(0, rows, indptr[-1]), indptr


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda reduction: reduction.__name__)
def test_reductions(reduction: Any, dtype: str) -> None:
    function = rows_of(reduction)
    compiled = jk.jit(function, strict=True)
    for rows in (2, 5, 33):
        arguments = case(rows, dtype, rows)
        np.testing.assert_allclose(compiled(*arguments), function(*arguments), rtol=1e-5, atol=1e-6)


def test_special_values_that_are_not_selected() -> None:
    """Neither a NaN nor an infinity reaches a sum, and no warning."""
    function = rows_of(total)
    values, indices, indptr = case(8, "float64", 1)
    rows = np.repeat(np.arange(8), np.diff(indptr))
    values[indices > rows] = np.nan
    np.testing.assert_allclose(
        jk.jit(function, strict=True)(values, indices, indptr), function(values, indices, indptr)
    )


def test_an_empty_selection_raises_as_in_numpy() -> None:
    def function(values: Any, indices: Any, indptr: Any) -> Any:
        largest = 0.0
        for i in range(len(indptr) - 1):
            columns = indices[indptr[i] : indptr[i + 1]]
            largest += values[indptr[i] : indptr[i + 1]][columns <= i].max()
        return largest

    compiled = jk.jit(function)
    values, indices, indptr = np.array([1.0, 2.0, 4.0, 3.0]), np.array([0, 0, 1, 5]), np.array([0, 2, 4])
    assert compiled(values, indices, indptr) == function(values, indices, indptr) == 6.0
    with pytest.raises(ValueError, match="zero-size array"):
        compiled(values, indices + 1, indptr)


def element(chosen: Any) -> Any:
    return chosen[0] if chosen.size else 0.0


def expression(chosen: Any) -> Any:
    return np.exp(chosen).sum()


@pytest.mark.parametrize("use", [element, expression], ids=lambda use: use.__name__)
def test_other_uses_copy_the_elements(use: Any) -> None:
    """In loops that are too long to be unrolled."""
    function = rows_of(use)
    compiled = jk.jit(function, strict=True)
    for count in (40, 3, 80):
        arguments = case(count, "float64", 2)
        np.testing.assert_allclose(compiled(*arguments), function(*arguments), rtol=1e-12)


def changed_values(values: Any, columns: Any, limit: Any) -> Any:
    chosen = values[columns <= limit]
    values[:] = 9.0
    return chosen.sum()


def changed_columns(values: Any, columns: Any, limit: Any) -> Any:
    is_chosen = columns <= limit
    chosen = values[is_chosen]
    columns[:] = limit + 1
    return chosen.sum() + chosen.size


def changed_mask(values: Any, columns: Any, limit: Any) -> Any:
    is_chosen = columns <= limit
    chosen = values[is_chosen]
    is_chosen[:] = True
    return chosen.max() if chosen.size else 0.0


@pytest.mark.parametrize("change", [changed_values, changed_columns, changed_mask], ids=lambda change: change.__name__)
def test_changes_before_a_selection_is_read(change: Any) -> None:
    """NumPy has copied the elements by then."""

    def function(values: Any, indices: Any, indptr: Any) -> Any:
        result = np.zeros(len(indptr) - 1)
        for i in range(len(indptr) - 1):
            begin, end = indptr[i], indptr[i + 1]
            result[i] = change(values[begin:end], indices[begin:end], i)
        return result

    values, indices, indptr = case(40, "float64", 3)
    expected = function(values.copy(), indices.copy(), indptr)
    compiled = jk.jit(function)
    for _ in range(3):
        np.testing.assert_allclose(compiled(values.copy(), indices.copy(), indptr), expected, rtol=1e-12)
