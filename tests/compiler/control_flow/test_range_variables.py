"""Ranges in variables, whose limits or choice only the compiled code knows."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def diagonals(x: Any, offsets: Any, n: int) -> Any:
    """Sums along diagonals, as matrix profiles have them."""
    out = np.zeros(len(offsets))
    for k in range(len(offsets)):
        g = offsets[k]
        rows = range(min(n, n - g)) if g >= 0 else range(-g, min(n, n - g))
        total = 0.0
        for i in rows:
            total += x[i] * x[i + g]
        out[k] = total
    return out


def chosen(x: Any, a: Any) -> Any:
    indices = range(3, 20) if a[0] > 0 else range(8)
    total = 0.0
    for i in indices:
        total += x[i]
    return total


def without_else(x: Any, a: Any) -> Any:
    indices = range(5)
    if a[0] > 0:
        indices = range(a[0], a[0] + 7)
    total = 0.0
    for k, i in enumerate(indices):
        total += k * x[i]
    return total


def downwards(x: Any, a: Any) -> Any:
    indices = range(a[0] + 9, a[0], -2)
    total = 0.0
    for i in indices:
        total += x[i] * i
    return total


def carried(x: Any, a: Any) -> Any:
    """The range of the previous iteration."""
    indices = range(4)
    total = 0.0
    for k in range(len(a)):
        for i in indices:
            total += x[i]
        indices = range(a[k], a[k] + 9)
    return total


def empty(x: Any, a: Any) -> Any:
    indices = range(a[0], a[0] - 3) if a[0] > 0 else range(a[0])
    count = 0
    for i in indices:
        count += i
    return count


@pytest.mark.parametrize("function", [chosen, without_else, downwards, carried, empty])
@pytest.mark.parametrize("first", [3, 0, -3])
def test_ranges_in_variables(function: Any, first: int) -> None:
    if function in (downwards, carried) and first < 0:
        first = 7
    x, a = np.random.default_rng(0).random(40), np.array([first, 9, 4])
    compiled = jk.jit(function, strict=True)
    for values in (a, a + 1):
        np.testing.assert_allclose(compiled(x, values), function(x, values), rtol=1e-13)


def test_diagonals() -> None:
    x, offsets = np.random.default_rng(0).random(60), np.array([3, -2, 0, 5, -7, -59, 59])
    compiled = jk.jit(diagonals, strict=True)
    np.testing.assert_allclose(compiled(x, offsets, 60), diagonals(x, offsets, 60), rtol=1e-13)


def test_an_index_outside_of_the_array_raises() -> None:
    compiled = jk.jit(chosen, strict=True)
    with pytest.raises(IndexError):
        compiled(np.ones(10), np.array([1]))


def steps_differ(x: Any, a: Any) -> Any:
    indices = range(8, 2, -1) if a[0] > 0 else range(8)
    total = 0.0
    for i in indices:
        total += x[i] * i
    return total


def test_ranges_of_different_steps_are_not_selected() -> None:
    x = np.random.default_rng(0).random(40)
    for first in (1, -1):
        a = np.array([first])
        assert jk.jit(steps_differ)(x, a) == pytest.approx(steps_differ(x, a))
    with pytest.raises(jk.JitKernelsError, match="range"):
        jk.jit(steps_differ, strict=True)(x, np.array([1]))
