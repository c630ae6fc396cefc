"""Rows of arrays that several stages of a loop read: each reads them where they are, as often as they need."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def checked_rows(m: Any, index: Any) -> Any:
    """Indices are checked by one nest, and read by another one."""
    out = np.zeros((len(index), index.shape[1]), m.dtype)
    for i in range(len(index)):
        row = index[i]
        out[i] = m[row, 0] + m[row, 1]
    return out


def columns(m: Any, index: Any) -> Any:
    total = np.zeros(len(index), m.dtype)
    for k in range(index.shape[1]):
        total += m[index[:, k], 0] * index[:, k]
    return total


def also_by_element(m: Any, index: Any) -> Any:
    total = m.dtype.type(0)
    for i in range(len(index)):
        row = index[i]
        total += m[row, 0].sum() + row[0]
        if row[-1] > 1:
            total += m[row[-1], 1] + (row * 2).sum()
    return total


def changed_between(m: Any, index: Any) -> Any:
    """The rows are views: what was written in between is seen."""
    m = m.copy()
    for i in range(len(m) - 1):
        row = m[i]
        scale = row.sum()
        m[i, 0] = 1
        m[i + 1] += row / (1 + scale * scale)
    return m


@pytest.mark.parametrize("function", [checked_rows, columns, also_by_element, changed_between])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_of_stages(function: Callable[..., Any], dtype: str) -> None:
    compiled = jk.jit(function)
    for rows, width in ((0, 3), (1, 1), (4, 3), (9, 8), (20, 17)):
        rng = np.random.default_rng(rows)
        m, index = rng.random((12, 5)).astype(dtype), rng.integers(-12, 12, (rows, width))
        for one, other in ((m, index), (m[:, ::-1], np.asfortranarray(index)), (m[::2].repeat(2, 0), index[::-1])):
            np.testing.assert_allclose(compiled(one, other), function(one, other), rtol=1e-5)


@pytest.mark.parametrize("function", [checked_rows, columns])
def test_indices_out_of_bounds(function: Callable[..., Any]) -> None:
    index = np.arange(12).reshape(4, 3)
    compiled = jk.jit(function)
    for bad in (12, -13):
        for place in ((0, 0), (3, 2), (2, 1)):
            wrong = index.copy()
            wrong[place] = bad
            with pytest.raises(IndexError):
                compiled(np.ones((12, 2)), wrong)
        np.testing.assert_allclose(compiled(np.ones((12, 2)), index), function(np.ones((12, 2)), index))
