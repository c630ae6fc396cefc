"""Variables of rounds that only an inner loop sets: where that has no round, Python raises, or has what they had."""

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
def test_inner_loops_without_a_round(function: Callable[..., Any]) -> None:
    """None in the first round: there is no value. None in a later one: the one that was there."""
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
    assert "left to NumPy" not in str(compiled.explain(x, many))


def test_what_is_read_inside_alone() -> None:
    """A variable that nothing reads behind the inner loop needs no round."""

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
    assert "left to NumPy" not in str(compiled.explain(x))
