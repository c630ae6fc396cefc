"""Functions that call themselves: inlined where tracing decides how deep, else they run in NumPy."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from jitted import notes, reasons

import jitkernels as jk


def power(x: Any, n: int) -> Any:
    if n == 0:
        return np.ones_like(x)
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def even(x: Any, n: int) -> Any:
    return x if n == 0 else odd(x + 1, n - 1)


def odd(x: Any, n: int) -> Any:
    return x * 2 if n == 0 else even(x * 3, n - 1)


def fibonacci(x: Any, n: int) -> Any:
    return x if n < 2 else fibonacci(x, n - 1) + fibonacci(x, n - 2)


def halves(x: Any, level: int) -> Any:
    """Of sizes that the call decides, within a loop."""
    if level == 0:
        return x * 2
    inner = halves(0.5 * (x[:-1:2] + x[1::2]), level - 1)
    for i in range(len(inner)):
        inner[i] += x[2 * i]
    return np.repeat(inner, 2)


def power_of_thirteen(x: Any, n: int) -> Any:
    return power(x, 13) + n


def wide(rows: int, columns: int) -> Any:
    if rows > columns:
        return staircase(columns, rows).T
    result = np.full((rows, columns), False)
    for i in range(rows):
        result[i, i : i + columns - rows + 1] = True
    return result


staircase: Any = numba.njit(wide)


@pytest.mark.parametrize("sizes", [(5, 8), (8, 5), (6, 6)])
def test_recursion_of_numba(sizes: tuple[int, int]) -> None:
    """Functions of numba's, which call themselves under the name of the compiled function."""
    compiled = jk.jit(staircase.py_func, strict=True)
    np.testing.assert_array_equal(compiled(*sizes), staircase.py_func(*sizes))
    around = jk.jit(lambda m, n: staircase(m, n), strict=True)
    np.testing.assert_array_equal(around(*sizes), staircase.py_func(*sizes))


@pytest.mark.parametrize(
    "function", [power, even, odd, fibonacci, halves, power_of_thirteen], ids=lambda one: one.__name__
)
def test_decided_recursion(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for n in (0, 1, 2, 3, 5):
        x = np.random.default_rng(n).random(32)
        np.testing.assert_allclose(compiled(x, n), function(x, n), rtol=1e-13)


def grown(x: Any, n: int) -> Any:
    if x.sum() > n:
        return x
    return grown(x + 1, n)


def grown_in_loops(x: Any, n: int) -> Any:
    for _ in range(20):
        if x.sum() < n:
            x = x + grown_in_loops(x + 1, n)
    return x


def deep(x: Any, n: int) -> Any:
    return x if n == 0 else deep(x + 1, n - 1)


@pytest.mark.parametrize("function", [grown, grown_in_loops], ids=lambda one: one.__name__)
def test_recursion_that_values_decide(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for n in (0, 7):
        np.testing.assert_array_equal(compiled(np.ones(3), n), function(np.ones(3), n))
    assert "calls itself too often" in str([*reasons(compiled), *notes(compiled)])


@pytest.mark.parametrize(("function", "n"), [(deep, 100), (fibonacci, 16)])
def test_recursion_that_is_too_long(function: Callable[..., Any], n: int) -> None:
    compiled = jk.jit(function)
    np.testing.assert_array_equal(compiled(np.ones(3), n), function(np.ones(3), n))
    assert "calls itself too often" in str(reasons(compiled))
