"""Random functions of loops and branches: bitwise the results of Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_loops import Maker
from written import function_of

import jitkernels as jk

COUNT = 40
MOSTLY = 0.8
"""How many of those with loops are compiled, at least."""


def arguments(n: int) -> tuple[Any, ...]:
    random = np.random.default_rng(n)
    return random.random(n), random.random((n, n)) * 4 - 2, n, 0.75


def outcome(function: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gives, and leaves in its arguments."""
    try:
        found = function(*given)
    except (ArithmeticError, IndexError, UnboundLocalError) as error:
        return type(error), str(error), given[0], given[1]
    return *found, *map(kind, found), given[0], given[1]


def kind(value: Any) -> str:
    """What a number is; of NumPy's floats and Python's a variable may have either."""
    return "float" if isinstance(value, float) else type(value).__name__


def alike(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(
        a is b or (np.array_equal(a, b, equal_nan=True) if isinstance(b, np.ndarray | float) else a == b)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("start", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(10, COUNT, 10))])
def test_random_loops(start: int, tmp_path: Path) -> None:
    compiled = looping = 0
    for seed in range(start, start + 10):
        function = function_of(Maker(seed).text(), f"random_loop_{seed}", tmp_path)
        fast = jk.jit(function)
        for n in (9, 12):
            expected = outcome(function, arguments(n))
            found = outcome(fast, arguments(n))
            assert alike(found, expected), f"{Maker(seed).text()}\n{found}\n{expected}"
        if " in range" in Maker(seed).text():
            looping += 1
            compiled += any(one.has_flows for kept in fast._specializations.values() for one in kept)
    assert compiled >= MOSTLY * looping
