"""Variables set only in inner loops: without an iteration Python raises, or they keep their value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def numbers(x: Any, many: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(many[i]):
            last = x[i, 0] * j
        total = total + last
    return total


def until(x: Any, many: Any) -> Any:
    total, i = 0.0, 0
    while i < len(x):
        j = 0
        while j < many[i]:
            last = x[i, 1] + j
            j += 1
        total = total + last
        i += 1
    return total


def arrays(x: Any, many: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(many[i]):
            last = x[i] * j
        total = total + np.sum(last)
    return total


def behind_branches(x: Any, many: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if many[i] > 5:
            last = x[i, 0] * 2
        for j in range(many[i]):
            last = x[i, 0] * j
        total = total + last
    return total


def arrays_behind_branches(x: Any, many: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if many[i] > 5:
            last = x[i] * 2
        for j in range(many[i]):
            last = x[i] * j
        total = total + np.sum(last)
    return total


def two_deep(x: Any, many: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        for j in range(1, 3):
            for k in range(many[i]):
                last = x[i, 2] * (j + k)
            total = total + last
    return total


FUNCTIONS = numbers, until, arrays, behind_branches, arrays_behind_branches, two_deep
MANY = 40


@pytest.mark.parametrize("function", FUNCTIONS)
def test_inner_loops_without_an_iteration(function: Callable[..., Any]) -> None:
    """In the first outer iteration the variable is unset; in a later one it keeps its value."""
    x = np.random.default_rng(0).normal(size=(MANY, 3))
    compiled: Any = jk.jit(function)
    for empty in (None, 0, 1, MANY - 1):
        many = np.random.default_rng(1).integers(1, 4, MANY)
        if empty is not None:
            many[empty] = 0
        if empty == 0:
            with pytest.raises(UnboundLocalError):
                compiled(x, many)
        else:
            np.testing.assert_allclose(compiled(x, many), function(x, many), rtol=1e-14)
    assert "falls back to NumPy" not in str(compiled.explain(x, many))


def test_variables_read_only_inside() -> None:
    """A variable that nothing reads after the inner loop needs no iteration of it."""

    def below(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            for j in range(i):
                one = x[i, 0] * j
                total = total + one
        return total

    x = np.random.default_rng(0).normal(size=(MANY, 3))
    compiled: Any = jk.jit(below)
    np.testing.assert_allclose(compiled(x), below(x), rtol=1e-14)
    assert "falls back to NumPy" not in str(compiled.explain(x))


def by_turns(c: Any) -> Any:
    z = 0.0
    for x in c:
        if x <= 1:
            k = x + 1
        else:
            z = z + k
    return z


def deleted_now_and_then(c: Any) -> Any:
    k = 0.5
    for i in range(len(c)):
        if c[i] > 2:
            del k
        else:
            k = c[i] + 1
        if i % 3 == 2:
            c[i] = k
    return c


def behind_a_loop(c: Any) -> Any:
    i = 0
    while i < len(c):
        if c[i] > 1:
            found = i
        i += 1
    return found


def in_a_function_inside(c: Any) -> Any:
    def read(one: Any) -> Any:
        return k + one

    z = 0.0
    for i in range(len(c)):
        if c[i] > 1:
            k = c[i]
        z = z + read(1.0)
    return z


def arrays_by_turns(c: Any) -> Any:
    z = 0.0
    for i in range(len(c)):
        if c[i] > 1:
            k = c * i
        else:
            z = z + np.sum(k)
    return z


def left_early(c: Any) -> Any:
    for i in range(len(c)):
        if c[i] > 1:
            if c[i] > 3:
                return k  # type: ignore[has-type]  # noqa: F821  # as it is about
            k = i + 0.5
    return k * 2


@pytest.mark.parametrize(
    "function", [by_turns, deleted_now_and_then, behind_a_loop, in_a_function_inside, arrays_by_turns, left_early]
)
def test_variables_set_in_some_iterations(function: Callable[..., Any]) -> None:
    """One code raises Python's exception where the variable is unset, and else returns its result."""
    compiled: Any = jk.jit(function)
    outcomes = set()
    for seed in range(12):
        c = np.random.default_rng(seed).integers(0, 5, 12) + 0.0
        c[:seed] = seed % 5
        expected, found = ([outcome(one, (c.copy(), None))] for one in (function, compiled))
        assert str(found) == str(expected), c
        outcomes.add(found[0][0])
    assert UnboundLocalError in outcomes
    assert len(outcomes) > 1
    assert "falls back to NumPy" not in str(compiled.explain(c))


def outcome(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        found = function(given[0])
    except NameError as error:
        return type(error) if "local" in str(error) else UnboundLocalError, str(error), given[0].tolist()
    return np.asarray(found).tolist() if np.ndim(found) == 0 else "array", str(found), given[0].tolist()
