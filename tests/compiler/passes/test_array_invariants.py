"""Arrays that do not change in a loop are computed in front of it, if it runs."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.transforms.invariants import array_invariants
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop

Program = Callable[..., Any]


def decay(u: Any, x: Any, steps: int) -> Any:
    for _ in range(steps):
        u = u + 0.1 * np.exp(-x) * u
    return u


def until_small(u: Any, x: Any, steps: int) -> Any:
    t = 0
    while np.abs(u).sum() > 1e-3 and t < steps:
        u = u * np.tanh(x)
        t += 1
    return u, t


def counted_while(u: Any, x: Any, steps: int) -> Any:
    t = 0
    while t < steps:
        u = u * np.tanh(x) + np.log(np.abs(x))[::-1]
        t += 1
    return u


def with_a_break(u: Any, x: Any, steps: int) -> Any:
    for t in range(steps):
        u = u - 0.2 * np.arctan(x) * u
        if u.max(initial=0.0) > 1.5 + t:
            break
    return u


def of_reductions(u: Any, x: Any, steps: int) -> Any:
    for _ in range(steps):
        u = u + (x.mean() - u) * 0.1 + (x - x.max())[::-1] * 0.01
    return u


def of_products(u: Any, x: Any, steps: int) -> Any:
    for _ in range(steps):
        a = np.outer(x, x) * 0.1
        u = (a @ a) @ u
    return u


def of_broadcasts(u: Any, x: Any, steps: int) -> Any:
    out = np.zeros((3, len(u)))
    for t in range(steps):
        out += np.sqrt(np.abs(np.sin(x)))[None, :] * u * t
    return out


def through_two_loops(u: Any, x: Any, steps: int) -> Any:
    for _ in range(2):
        for t in range(steps):
            u = u * np.cos(x) + np.float64(t)
    return u


def of_elements(u: Any, x: Any, steps: int) -> Any:
    """Stays: it is a number of the inner loop."""
    u = u.copy()
    for _ in range(steps):
        for i in range(len(u)):
            u[i] += math.exp(-abs(x[i])) * u[i]
    return u


def assigned(u: Any, x: Any, steps: int) -> Any:
    """Stays: each iteration writes it to the array that the loop carries."""
    y = u
    for _ in range(steps):
        y = np.exp(x)
    return y


def both(u: Any, x: Any, steps: int) -> Any:
    """A result and what is made of it are read in the loop."""
    for _ in range(steps):
        e = np.exp(x)
        u = u * e / (e.sum() + 1.0) + np.sin(e)
    return u


def of_ints(u: Any, x: Any, steps: int) -> Any:
    k = (x * 3).astype(np.int64)
    for _ in range(steps):
        u = u + (np.cumsum(k) // 3)
    return u


def overwritten(u: Any, x: Any, steps: int) -> Any:
    """Stays: the loop writes to what is read."""
    x = x.copy()
    for _ in range(steps):
        u = u + np.exp(-x)
        x[: len(x) // 2] *= 0.5
    return u


def of_the_iteration(u: Any, x: Any, steps: int) -> Any:
    for t in range(steps):
        u = u + np.exp(-x * t)
    return u


def of_growing_slices(u: Any, x: Any, steps: int) -> Any:
    for t in range(steps):
        u = u + np.exp(-x[:t]).sum()
    return u


def cheap(u: Any, x: Any, steps: int) -> Any:
    for _ in range(steps):
        u = u * 0.5 + (x + 1.0)
    return u


def in_a_branch(u: Any, x: Any, steps: int) -> Any:
    for t in range(steps):
        if u.sum() > t:
            u = u * np.exp(-np.abs(x))
    return u


MOVED = [
    until_small, decay, counted_while, with_a_break, of_reductions, of_products, of_broadcasts, through_two_loops,
    both, of_ints,
]  # fmt: skip
STAYING = [of_elements, assigned, of_growing_slices, overwritten, of_the_iteration, cheap, in_a_branch]
SIZES = [(7, 5), (33, 3), (1, 2), (0, 3), (5, 0), (16, 1)]
"""Elements and steps."""


def arguments(n: int, steps: int) -> tuple[Any, Any, int]:
    drawn = np.random.default_rng([n, steps])
    return drawn.standard_normal(n), drawn.standard_normal(n), steps


def outcome(function: Program, n: int, steps: int) -> tuple[Any, set[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments(n, steps))
    return result, {str(one.message) for one in caught}


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each loop that has been lowered, whether arrays of its body were moved."""
    found, move = [], array_invariants.without_invariants

    def noting(outer: OuterLoop) -> Node:
        new = move(outer)
        found.append(new is not outer.loop)
        return new

    monkeypatch.setattr(array_invariants, "without_invariants", noting)
    return found


@pytest.mark.parametrize("function", [*MOVED, *STAYING], ids=lambda one: one.__name__)
def test_results(function: Program, moves: list[bool]) -> None:
    for first in (0, 4):
        sizes = [
            size for size in SIZES[first:] + SIZES[:first] if size[0] or function not in (of_reductions, with_a_break)
        ]
        compiled = jk.jit(function, strict=True)
        for size in sizes:
            expected, expected_warnings = outcome(function, *size)
            found, found_warnings = outcome(compiled, *size)
            for one, other in zip(
                *((part if type(part) is tuple else (part,)) for part in (found, expected)), strict=True
            ):
                np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12, err_msg=str(size))
            assert found_warnings <= expected_warnings, size
    assert any(moves) is (function in MOVED)


def test_arguments_are_written_as_python_writes_them() -> None:
    """What an argument holds before the loop writes to it counts, and the results of a loop are arrays of their own."""

    def relax(u: Any, x: Any, steps: int) -> Any:
        y = u
        for _ in range(steps):
            y = np.exp(x)
            u += y * 0.1
        return y

    for steps in (0, 1, 4):
        u, x, _ = arguments(9, 4)
        v = u.copy()
        found, expected = jk.jit(relax)(u, x, steps), relax(v, x, steps)
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(u, v)
        assert (found is u) is (expected is v)
