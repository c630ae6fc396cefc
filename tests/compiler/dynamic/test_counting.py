"""Counts, index tuples, running sums and repeated updates, also of arrays of computed length."""

from typing import Any

import numpy as np
import pytest
from computed_calls import Program, check

X = np.random.default_rng(0).random(30)
CALLS = [(X,), (X / 4,), (X[:1],), (X[:9:-2],), (np.r_[X, 0.9],)]
PROGRAMS: list[Program] = []
UPDATES = (np.minimum, np.maximum, np.multiply, np.subtract, np.add, np.logical_or)


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def counted(x: Any) -> Any:
    places = (x * 10).astype(np.int64)
    return np.bincount(places, minlength=12), np.bincount(places, weights=x, minlength=12)


@program
def counted_some(x: Any) -> Any:
    places = (x * 10).astype(np.int64)
    return np.bincount(places[x > 0.1], minlength=12), np.bincount(places[x > 0.1], weights=x[x > 0.1], minlength=12)


@program
def counted_in_a_loop(x: Any) -> Any:
    total = np.zeros(12)
    for i in range(3):
        places = (x * (i + 2)).astype(np.int64)
        total += np.bincount(places, weights=x > 0.5, minlength=12)
        total += np.bincount(places[x > 0.2 * i], minlength=12)
    return total


@program
def nonzeros(x: Any) -> Any:
    return np.count_nonzero(x[x > 0.2] > 0.5), np.count_nonzero(np.flatnonzero(x > 0.2))


@program
def tuples(x: Any) -> Any:
    table = x[:, None] * x[None, :]
    total = 0
    for i, j in np.argwhere(table > 0.5):
        total += 100 * i + j
    return np.argwhere(table > 0.2), np.argwhere(x > 0.3), total


@program
def running(x: Any) -> Any:
    return np.cumsum(x[x > 0.5]), np.cumsum(np.flatnonzero(x > 0.2))


@program
def backwards(x: Any) -> Any:
    return np.flatnonzero(x > 0.3)[::-1], (x[x > 0.3] * 2)[::-1]


@program
def marked(x: Any) -> Any:
    reached, places, mask = np.zeros(len(x), dtype=bool), np.arange(len(x)) // 2, x > 0.5
    while not reached[0]:
        reached[places[mask]] = True
        mask = ~mask
    return reached


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_programs(function: Program) -> None:
    check(function, CALLS)


@pytest.mark.parametrize("ufunc", UPDATES, ids=lambda one: one.__name__)
def test_repeated_updates(ufunc: Any) -> None:
    """Repeated indices count repeatedly, negative ones from the end; values may be views of the array."""

    def updated(x: Any) -> Any:
        y, places = x.copy(), (x * len(x)).astype(np.int64) - 1
        ufunc.at(y, places, 0.5)
        ufunc.at(y, places, x[::-1])
        ufunc.at(y, places[x > 0.3], 0.25)
        return y

    check(updated, CALLS)


def test_updates_without_operand() -> None:
    def updated(x: Any) -> Any:
        y = x.copy()
        np.negative.at(y, (x * len(x)).astype(np.int64) - 1)
        return y

    check(updated, CALLS)


def test_equality() -> None:
    def equal(x: Any) -> Any:
        return (
            np.array_equal(x, x * 1), np.array_equal(x, x + 1), np.array_equal(x, x[1:]), np.allclose(x, x + 1e-12),
            np.allclose(x, x * 1.1), np.array_equal(x / x, x / x, equal_nan=True),
        )  # fmt: skip

    check(equal, CALLS)
