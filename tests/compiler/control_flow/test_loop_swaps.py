"""Variables that swap arrays in loops: writes after the loop reach the right array."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import reasons, same

import jitkernels as jk


def _in_a_branch(a: Any, b: Any, n: int) -> Any:
    for i in range(len(a)):
        if i != n:
            a, b = b, a
    b[:] = a * 0.5
    return a, b


def _in_a_while_loop(a: Any, b: Any, n: int) -> Any:
    i = 0
    while i < len(a):
        i += 1
        if i % 3 == n:
            a, b = b, a
    b[0] = 7


def _in_two_loops(a: Any, b: Any, n: int) -> Any:
    for i in range(10):
        for j in range(len(a)):
            if (i + j) % 5 == n:
                a, b = b, a
    a[1] = 9
    return b


def _results(a: Any, b: Any, n: int) -> Any:
    for i in range(len(a)):
        if i != n:
            a, b = b, a
    return a, b


def _best(a: Any, b: Any, n: int) -> Any:
    best = a
    for i in range(20):
        tried = best * 0.5 + i
        if tried.sum() < n:
            best = tried
    best[0] = 5
    return best


@pytest.mark.parametrize("function", [_in_a_branch, _in_a_while_loop, _in_two_loops, _results, _best])
def test_swapped_arrays(function: Any) -> None:
    compiled = jk.jit(function)
    for n in (0, 2, 100):
        given, others = ((x[:1000], x[1000:], n) for x in (np.arange(2000.0), np.arange(2000.0)))  # no copies
        found, expected = compiled(*given), function(*others)
        same(found, expected)
        same(given[:2], others[:2])
        results = found if isinstance(found, tuple) else (found,)
        right = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(results, right, strict=True):
            assert [one is x for x in given[:2]] == [other is x for x in others[:2]]


def test_loops_over_a_copied_argument_are_compiled() -> None:
    @jk.jit
    def best(a: Any) -> Any:
        found = a.copy()
        for i in range(20):
            tried = found * 0.5 + i
            if tried.sum() < 100:
                found = tried
        return found

    best(np.ones(100_000))
    assert not reasons(best)


def test_arguments_that_no_iteration_replaced_are_returned() -> None:
    """Code identifies the argument by its elements alone, NaN among them."""

    @jk.jit
    def lowest(a: Any, n: int) -> Any:
        for i in range(n):
            tried = a * 0.5 + i
            if tried[0] < a[0]:
                a = tried
        return a

    plain = lowest.__wrapped__
    for first in (9.0, -9.0, np.nan):
        x = np.r_[first, np.nan, np.arange(100.0)]
        result, expected = lowest(x, 3), plain(x, 3)
        same(result, expected)
        assert (result is x) == (expected is x) == (not first > 0)
    assert not reasons(lowest)


def twice_chosen(x: Any, k: Any) -> Any:
    y = x
    if k > 2:
        y = y * 2
    if k > 3:
        y = y + 1
    return y


def twice_chosen_and_written(x: Any, k: Any) -> Any:
    y = twice_chosen(x, k)
    y[0] = 5
    return y.sum()


def chosen_inside(x: Any, k: Any) -> Any:
    if k > 2:
        y = x
        if k > 3:
            y = y * 2
    else:
        y = x * 3
    y[1] = 9
    return [y]


def one_of_three(x: Any, k: Any) -> Any:
    y = (x if k > 4 else x * 2) if k > 3 else x * 3
    y += 1
    return y


@pytest.mark.parametrize("function", [twice_chosen, twice_chosen_and_written, chosen_inside, one_of_three])
def test_nested_branches_may_return_an_argument(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for k in (2.0, 3.0, 4.0, 5.0):
        x, other = np.arange(5.0) + 1, np.arange(5.0) + 1
        found, wanted = compiled(x, np.array(k)), function(other, np.array(k))
        assert np.array_equal(x, other)
        assert np.array_equal(found, wanted)
        found, wanted = (one[0] if type(one) is list else one for one in (found, wanted))
        assert (found is x) == (wanted is other)
