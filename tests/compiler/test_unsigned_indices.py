"""Indices and bounds of slices of type uint64 in loops, against plain Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def along_diagonals(x: Any, m: int, diagonals: Any) -> Any:
    total, width = 0.0, np.uint64(m)
    for k in range(len(diagonals)):
        shift = diagonals[k]
        steps = range(len(x) - m + 1 - shift) if shift >= 0 else range(-shift, len(x) - m + 1)
        for i in steps:
            row, column = np.uint64(i), np.uint64(i + shift)
            total += np.dot(x[row : row + width] - x[row], x[column : column + width])
    return total


def sums_of_windows(x: Any, m: int, diagonals: Any) -> Any:
    result = np.zeros(len(x))
    for k in range(len(diagonals)):
        for i in range(2, len(x) - m - 2):
            begin = np.uint64(i + diagonals[k])
            result[begin] += x[begin : begin + np.uint64(m)].sum()
            x[begin : begin + np.uint64(1)] = k
    return result


@pytest.mark.parametrize("function", [along_diagonals, sums_of_windows])
def test_unsigned_indices(function: Callable[..., Any]) -> None:
    x, diagonals = np.random.default_rng(0).random(25), np.array([0, 2, -2])
    compiled = jk.jit(function, strict=True)
    for m in (3, 5):
        np.testing.assert_allclose(compiled(x.copy(), m, diagonals), function(x.copy(), m, diagonals), rtol=1e-12)


def of_a_difference(x: Any, shifts: Any) -> Any:
    total = 0.0
    for i in range(len(shifts)):
        total += x[: np.uint64(shifts[i])].sum()
    return total


def test_negative_numbers_as_unsigned_ones() -> None:
    """They are larger than any extent, as NumPy has it."""
    x, shifts = np.random.default_rng(0).random(9), np.array([2, -1])
    assert jk.jit(of_a_difference)(x, shifts) == pytest.approx(of_a_difference(x, shifts))
