"""Functions of lists whose length is decided at run time give what Python gives, compiled or not."""
# ruff: noqa: PERF401  # as people write it

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from argument_kinds import outcome

import jitkernels as jk

SIZES = 0, 1, 5, 40
"""Of the array from which elements are taken: no list, a list of one, and longer ones."""


def of_each_round(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        found.append(x[i] * 2)
    return found


def of_some_rounds(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        if x[i] > 0:
            found.append(x[i])
    return found


def of_a_while_loop(x: Any, n: int) -> Any:
    found, i = [], 0
    while i < n:
        found.append(float(x[i]))
        i += 2
    return found


def of_ints(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        if x[i] < 1:
            found.append(i % 3)
    return found


def of_ints_and_more(x: Any, n: int) -> Any:
    found = [7, 1]
    for i in range(n):
        if x[i] > -1:
            found.append(i - 2)
    return found


def pushed_and_popped(x: Any, n: int) -> Any:
    found: list[Any] = []
    for i in range(n):
        if found and found[-1] < x[i]:
            found.pop()
        found.append(x[i])
    return found


def of_two_loops(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        if x[i] > 0:
            found.append(x[i])
    for i in range(n):
        if x[i] < -1:
            found.append(-x[i])
    return found


def of_a_comprehension(x: Any, n: int) -> Any:
    return [x[i] + 1 for i in range(n) if x[i] < 0.5]


MAKERS = (
    of_each_round, of_some_rounds, of_a_while_loop, of_ints, of_ints_and_more, pushed_and_popped, of_two_loops,
    of_a_comprehension,
)  # fmt: skip
USES: dict[str, Callable[[Any, Any], Any]] = {
    "len": lambda found, _: len(found),
    "sum": lambda found, _: sum(found),
    "sum and start": lambda found, value: sum(found, value),
    "min": lambda found, _: min(found),
    "max": lambda found, _: max(found),
    "min or default": lambda found, value: min(found, default=value),
    "max or default": lambda found, value: max(found, default=value),
    "max by key": lambda found, value: max(found, key=lambda one: (one - value) ** 2),
    "in": lambda found, value: value in found,
    "not in": lambda found, value: value not in found,
    "index": lambda found, value: found.index(value),
    "count": lambda found, value: found.count(value),
    "truth": lambda found, _: 1 if found else 2,
    "not": lambda found, _: not found,
    "any": lambda found, _: any(one > 1 for one in found),
    "all": lambda found, _: all(one > -1 for one in found),
    "first": lambda found, _: found[0],
    "last": lambda found, _: found[-1],
    "sorted": lambda found, _: sorted(found),
    "reversed": lambda found, _: list(reversed(found)),
    "equal": lambda found, value: found == [value],
    "mean": lambda found, _: sum(found) / len(found) if found else 0.0,
    "a loop over it": lambda found, value: [one * value for one in found],
}


def same(found: Any, expected: Any, *, is_sum: bool = False) -> None:
    """Require the same exception, or the same value of the same type; sums may be taken in another order.

    A sum is a variable of a loop: where there is nothing to add it is what it was before, as a number of NumPy.
    """
    assert type(found) is type(expected) or (is_sum and isinstance(expected, int | float) and type(found) is np.float64)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, type):
        assert found is expected
    else:
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)


def values(size: int) -> Any:
    """Return numbers, some of them equal, below and above 0."""
    return np.round(np.random.default_rng(size).normal(size=size) * 2) / 2


PAIRS = [
    pytest.param(make, use, id=f"{make.__name__}-{use}", marks=pytest.mark.full if (i + j) % 2 else [])
    for i, make in enumerate(MAKERS)
    for j, use in enumerate(USES)
]


@pytest.mark.parametrize(("make", "use"), PAIRS)
def test_functions_of_grown_lists(make: Callable[..., Any], use: str) -> None:
    """The same code serves all sizes; `value` is in some of the lists, once or more often."""
    of = USES[use]

    def function(x: Any, n: int, value: Any) -> Any:
        return of(make(x, n), value)

    compiled = jk.jit(function)
    for size in SIZES:
        x = values(size)
        for value in (0.5, 1.0, 99.0, 1):
            for _ in range(2):
                expected = outcome(function, x, size, value)
                same(outcome(compiled, x, size, value), expected, is_sum=use.startswith("sum"))


def distinct(x: Any, n: int) -> Any:
    found: list[Any] = []
    for i in range(n):
        if x[i] not in found:
            found.append(x[i])
    return found


def positions(x: Any, n: int) -> Any:
    found, total = [1.0], 0
    for i in range(n):
        if x[i] in found:
            total += found.index(x[i]) + found.count(x[i])
        else:
            found.append(x[i])
    return total, found


def lengths(x: Any, n: int) -> Any:
    found, total = [], 0.0
    for i in range(n):
        if x[i] > 0:
            found.append(x[i])
        total += len(found) * x[i]
    return total


def extremes(x: Any, n: int) -> Any:
    found, total = [0.25], 0.0
    for i in range(n):
        if x[i] > 0:
            found.append(x[i])
        total += max(found) - min(found) + sum(found)
    return total


def until_long(x: Any, n: int) -> Any:
    found = []
    for i in range(n):
        found.append(x[i])
        if len(found) == 3 or sum(found) > 2:
            break
    return found, len(found)


@pytest.mark.parametrize("function", [distinct, positions, lengths, extremes, until_long], ids=lambda f: f.__name__)
def test_functions_of_lists_that_grow(function: Callable[..., Any]) -> None:
    """They are read in the loop in which they grow."""
    compiled = jk.jit(function)
    for size in SIZES:
        x = values(size)
        for _ in range(2):
            found, expected = compiled(x, size), function(x, size)
            pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
            for one, other in pairs:
                same(one, other, is_sum=type(other) is float)


def of_a_rebound_array(x: Any, n: int) -> Any:
    state = x * 1.0
    found = [state]
    for i in range(n):
        state = state + 0.5 * x[i]
        found.append(state)
    return np.array(found)


def test_lists_beside_rebound_arrays() -> None:
    compiled = jk.jit(of_a_rebound_array, strict=True)
    for n in (0, 1, 9):
        x = np.random.default_rng(n).random(9)
        np.testing.assert_allclose(compiled(x, n), of_a_rebound_array(x, n), rtol=1e-13)
