"""Derivatives of loops without iterations, and of variables that are arguments or unset before the loop."""

from typing import Any

import numpy as np
import pytest
from differences import agree, gradient

import jitkernels as jk

PROGRAMS: list[Any] = []


@PROGRAMS.append
def argument(x: Any, n: int) -> Any:
    y = x
    for _ in range(n):
        y = y * 1.5
    return np.sum(y * y)


@PROGRAMS.append
def views_that_are_written_to(x: Any, n: int) -> Any:
    y, z = x[:2], x[1:3]
    for i in range(n, 0, -1):
        y, z = z * 1.5 + i, y * z
    y[0] = 2.0
    return np.sum(y * z) + np.sum(x**3)


@PROGRAMS.append
def rows(x: Any, n: int) -> Any:
    """Inner loops of no rounds: for any number, and in some rounds of the outer one."""
    s = 0.0
    for i in range(x.shape[0]):
        y, z = x[i], x[i]
        for _ in range(n):
            y = y * 1.1
        for _ in range(i):
            z = np.sin(z)
        s = s + np.sum(y * z)
    return s


@PROGRAMS.append
def unset(x: Any, n: int) -> Any:
    for i in range(n):
        t, u = x[0, i % 3] * i, x * i
    if n > 0:
        return t + np.sum(u * x)
    return np.sum(x**2)


@PROGRAMS.append
def listed(x: Any, n: int) -> Any:
    found = [x * 1.0]
    for _ in range(n):
        found.append(found[-1] * x)
    return np.sum(np.array(found) ** 2)


@PROGRAMS.append
def what_is_not_there(x: Any, n: int) -> Any:
    """Rounds that would raise."""
    y, s = x[:n], 0.5
    for i in range(y.shape[0]):
        s = s * y[0, 1] + y[i, 0]
    return s * np.sum(x)


@pytest.mark.parametrize("function", PROGRAMS)
def test_no_iterations(function: Any) -> None:
    """Calls without iterations have code of their own, before and after calls with some."""
    x = np.cos(np.arange(12.0)).reshape(4, 3)
    derivative = jk.grad(function)
    for n in (0, 9, 1, 0):
        agree(derivative(x, n), gradient(lambda x, n=n: function(x.copy(), n), [x], 0), 1e-6, n)


def test_a_variable_without_a_value() -> None:
    def last(x: Any, n: int) -> Any:
        for i in range(n):
            t = x * i
        return np.sum(t)

    derivative = jk.grad(last)
    assert derivative(np.ones(3), 10).tolist() == [9.0] * 3
    with pytest.raises(UnboundLocalError):
        derivative(np.ones(3), 0)


@pytest.mark.parametrize("rounds", [0, 5, 12])
def test_sums_of_lists(rounds: int) -> None:
    """Differentiate ``sum`` of numbers or arrays that iterations append to a list."""

    def program(x: Any, n: int) -> Any:
        losses, states = [], [x]
        for i in range(n):
            states.append(states[-1] * x * 0.5)
            losses.append(np.sum(np.sin(states[-1])) * i)
        return sum(losses) + np.sum(sum(states) * x) + sum(losses, 0.5) / (1 + len(states))

    x = np.linspace(0.5, 1.5, 3)
    assert "falls back to NumPy" not in str(jk.jit(program).explain(x, rounds))
    agree(jk.jit(program)(x, rounds), program(x, rounds), 1e-14)
    agree(jk.grad(program)(x, rounds), gradient(lambda x: program(x, rounds), [x], 0), 1e-6)
