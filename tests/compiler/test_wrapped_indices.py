"""Remainders of indices that wrap around at most once: periodic grids of any size, and neighbours that wrap twice."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def neighbours(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[(i - 1) % n] - 2 * x[i] + 3 * x[(i + 1) % n]
    return out


def second_neighbours(x: Any) -> Any:
    """Wraps twice where n is 1."""
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[(i - 2) % n] - 2 * x[(i + 2) % n]
    return out


def shifted(x: Any, by: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[(i + by) % n]
    return out


def part(x: Any) -> Any:
    """The loop neither begins nor ends where indices wrap."""
    n = len(x)
    out = np.zeros(n)
    for i in range(2, n - 1):
        out[i] = x[(i - 1) % n] + x[(i + 1) % n]
    return out


def backwards(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n - 1, -1, -1):
        out[i] = x[(i - 1) % n] + x[(i + 1) % n]
    return out


def every_other(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(0, n, 2):
        out[i] = x[(i - 1) % n] + x[(i + 1) % n]
    return out


def in_place(x: Any) -> Any:
    """Iterations depend on earlier ones, the last on the first."""
    x = x.copy()
    n = len(x)
    for i in range(n):
        x[i] = 0.5 * x[(i - 1) % n] + 0.25 * x[(i + 1) % n]
    return x


def in_a_branch(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        if x[i] > 0.5:
            out[i] = x[(i + 1) % n]
        else:
            out[i] = -x[(i - 1) % n]
    return out


def grid(x: Any) -> Any:
    n = len(x)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            for a in range(-1, 2):
                for b in range(-1, 2):
                    out[i, j] += (3 * a + b) * x[(i + a) % n] * x[(j + b) % n]
    return out


def written(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[(i + 1) % n] += x[i]
        out[(i - 1) % n] -= 2 * x[i]
    return out


def never(x: Any) -> Any:
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[i % n] + i % (n + 1)
    return out


def until_found(x: Any) -> Any:
    """The last iteration is not known."""
    n = len(x)
    out = np.zeros(n)
    for i in range(n):
        if x[i] > 0.9:
            break
        out[i] = x[(i + 1) % n]
    return out


FUNCTIONS = (neighbours, second_neighbours, part, backwards, every_other, in_place, in_a_branch, grid, written, never,
             until_found)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_periodic_indices(function: Callable[[Any], Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for n in (5, 17, 40, 3, 2, 1, 0, 64):
        for dtype in (np.float64, np.float32):
            within = 1e-13 if dtype is np.float64 else 1e-6  # a grid multiplies in another order
            x = np.random.default_rng(n).random(n).astype(dtype)
            np.testing.assert_allclose(compiled(x), function(x), within, within)
            wide = np.random.default_rng(n).random(3 * n).astype(dtype)[::3]
            np.testing.assert_allclose(compiled(wide), function(wide), within, within)


@pytest.mark.parametrize("by", [0, 1, -1, 3, -3, 100, -100])
def test_shift_that_may_wrap_often(by: int) -> None:
    compiled = jk.jit(shifted, strict=True)
    for n in (7, 1, 2, 64):
        x = np.random.default_rng(n).random(n)
        np.testing.assert_array_equal(compiled(x, by), shifted(x, by))
