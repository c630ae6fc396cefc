"""Arrays that loops write to and give another one, while others have them: what loops go along, functions.

A variable's array is its own if nobody else has it. Who does, sees what is written to it, and nothing later.
"""

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

PROGRAMS: list[Any] = []
GOING = {
    "array": lambda u: u,
    "view": lambda u: u[::-1],
    "enumerate": lambda u: (one for _, one in enumerate(u)),
    "zip": lambda u: map(sum, zip(u, u[::-1], strict=True)),
    "map": lambda u: map(abs, u),
    "reversed": reversed,
}


def going_along(u: Any, x: Any) -> Any:
    t = 0.0
    for one in u:
        t = t * 2 + one
        u[-1] += one
        u = u * 0.5 + x
    return u, t


def going_along_with_numbers(u: Any, x: Any) -> Any:
    t = 0.0
    for i, one in enumerate(u):
        for k, other in zip(u, x, strict=True):
            t = t + one * k * other + i
        u[-1] = t * 0.01
        u = u * 0.5
    return u, t


def rows(u: Any, x: Any) -> Any:
    m, t = np.outer(u, x), 0.0
    for row in m:
        row += 1.0
        t = t + np.sum(m) + row[0]
        m = m * 0.5
    return m, t


def loops_inside(u: Any, x: Any) -> Any:
    t = 0.0
    for one in u:
        t = t * 2 + one
        for _ in range(x.shape[0]):
            u[-1] += 1
            u = u * 0.5
    return u, t


def branches(u: Any, x: Any) -> Any:
    t = 0.0
    for one in u:
        t = t * 2 + one
        if np.sum(u) > 8:
            u[::2] += 1
        else:
            u = x * 2
    return u, t


def a_branch_before(u: Any, x: Any) -> Any:
    t = 0.0
    for one in u:
        t = t * 2 + one
        if np.sum(u) > 8:
            u = x * 2
        u[-1] += 1
    return u, t


def defaults(u: Any, x: Any) -> Any:
    def last(v: Any = u) -> Any:
        return v[-1]

    for _ in range(x.shape[0]):
        u[-1] += 1.0
        u = u * 2
    return u, last()


def partial(u: Any, x: Any) -> Any:
    total = functools.partial(np.sum, u)
    for _ in range(x.shape[0]):
        u[-1] += 1.0
        u = u * 2
    return u, total()


def methods(u: Any, x: Any) -> Any:
    total = u.sum
    for _ in range(x.shape[0]):
        u[-1] += 1.0
        u = u * 2
    return u, total()


def remembering(v: Any) -> Any:
    return lambda: v[-1]


def closures(u: Any, x: Any) -> Any:
    last = remembering(u)
    for _ in range(x.shape[0]):
        u[-1] += 1.0
        u = u * 2
    return u, last()


def own_closures(u: Any, x: Any) -> Any:
    def last() -> Any:
        return u[-1]

    for _ in range(x.shape[0]):
        u[-1] += last()
        u = u * 0.5
    return u, last()


def iterators(u: Any, x: Any) -> Any:
    found = iter(u)
    first = next(found)
    u[1] = 7.0
    return first + next(found), np.sum(x)


PROGRAMS += [
    going_along, going_along_with_numbers, rows, loops_inside, branches, a_branch_before, defaults, partial, methods,
    closures, own_closures, iterators,
]  # fmt: skip


def agree(function: Any, x: Any) -> None:
    expected = function(x.copy())
    found = jk.jit(function)(x.copy())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("function", PROGRAMS)
def test_aliased_arrays_in_loops(function: Any) -> None:
    warnings.simplefilter("ignore")
    for x in (np.arange(1.0, 13.0), np.arange(1.0, 4.0), -np.arange(1.0, 4.0)):
        agree(lambda x: function(x * 1.0, x), x)


@pytest.mark.parametrize("name", GOING)
def test_loops_over_views_of_a_rebound_array(name: str) -> None:
    def program(x: Any) -> Any:
        u = x * 1.0
        t = 0.0
        for one in GOING[name](u):
            t = t * 2 + one
            u[-1] += one
            u = u * 0.5 + x
        return u, t

    for x in (np.arange(1.0, 13.0), np.arange(1.0, 4.0)):
        agree(program, x)


def test_unaliased_arrays_are_loop_carried() -> None:
    """They are compiled also where inner functions capture the variable."""
    x = np.arange(1.0, 13.0)
    for function in (own_closures, lambda u, x: [u := u * x for _ in range(x.shape[0])][-1]):
        explanation = str(jk.jit(lambda x, function=function: function(x * 1.0, x)).explain(x))
        assert "0 calls of NumPy" in explanation, explanation
