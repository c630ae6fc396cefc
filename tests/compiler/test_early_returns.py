"""Returns from loops and branches whose sides hold arrays in several variables."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def swapped(x: Any, n: Any) -> Any:
    old, new = x.copy(), np.zeros(len(x))
    for k in range(n):
        change = 0.0
        for i in range(len(x)):
            new[i] = 0.5 * old[i]
            change += abs(new[i] - old[i])
        if change < 0.1:
            return new, k
        old, new = new, old
    return old, n


def replaced(x: Any, n: Any) -> Any:
    r = x * 1.0
    p = r
    for _ in range(n):
        s = r - 0.5 * p
        if np.sqrt(s @ s) < 0.1:
            break
        p = s + 0.25 * p
        r = s
    return r + p


def same_array_twice(x: Any, n: Any) -> Any:
    a = x * 2
    b = a
    for i in range(n):
        if x[i % len(x)] > 0.5:
            a = b
        else:
            b = a + 1
    return a - b


def written_after(x: Any, n: Any) -> Any:
    """A write to one of two variables that may hold the same array."""
    a = x * 2
    b = x * 3
    if x[0] > 0.5:
        b = a
    else:
        a = a + n
        b = a * 2
    b[0] = -1.0
    return a + b


def returned_before_finally(x: Any, n: Any) -> Any:
    log = np.zeros(len(x))
    last = x * 0
    try:
        for k in range(n):
            last = x * k
            if last[0] > 1.0:
                return last + log, k
    finally:
        log[:] = last
    return log, -1


def returned_with_arguments(x: Any, n: Any) -> Any:
    y = x * 2
    for k in range(n):
        if y[0] > 3.0:
            x[0] = k
            return y
        y = y + x
    return x * 1


@pytest.mark.parametrize(
    "function", [swapped, replaced, same_array_twice, returned_with_arguments], ids=lambda one: one.__name__
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_arrays_at_early_returns(function: Callable[..., Any], backend: str) -> None:
    agree_in_all_cases(function, jk.jit(function, strict=True, backend=backend))


@pytest.mark.parametrize("function", [written_after, returned_before_finally], ids=lambda one: one.__name__)
def test_arrays_that_may_be_the_same(function: Callable[..., Any]) -> None:
    """Compiled or not."""
    agree_in_all_cases(function, jk.jit(function))


def agree_in_all_cases(function: Callable[..., Any], compiled: Callable[..., Any]) -> None:
    for size in (1, 3, 17):
        for n in (0, 1, 2, 9, 40):
            for scale in (0.01, 1.0):
                ours, theirs = ([scale * np.random.default_rng(size).random(size), n] for _ in range(2))
                got, expected = compiled(*ours), function(*theirs)
                for one, right in zip(
                    *(value if type(value) is tuple else (value,) for value in (got, expected)), strict=True
                ):
                    np.testing.assert_allclose(one, right, rtol=1e-12, atol=1e-14)
                np.testing.assert_array_equal(ours[0], theirs[0])


@pytest.mark.parametrize("function", [swapped, replaced], ids=lambda one: one.__name__)
def test_no_call_falls_back(function: Callable[..., Any]) -> None:
    """A result that may be either of two arrays is no alias of itself."""
    compiled, entered = jk.jit(function), list[str]()
    for n in (2, 9, 40):
        compiled(np.full(5, 0.01), n)
        sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
        try:
            compiled(np.full(5, 0.01), n)
        finally:
            sys.setprofile(None)
    assert function.__name__ not in entered
