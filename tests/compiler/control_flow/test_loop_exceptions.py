"""Calls of compiled loops that raise: Python reruns them from the initial state and raises its own exception."""

# as people write it
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given

import jitkernels as jk


def beyond(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += a[i]
    return s


def beyond_unread(a: Any, n: Any) -> Any:
    for i in range(n):
        a[i]
    return 1


def written_beyond(a: Any, n: Any) -> Any:
    for i in range(n):
        a[i] = i * 2


def before_the_first(a: Any, n: Any) -> Any:
    for i in range(n):
        a[-i] += 1


def divided(a: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        total += 100 // (i - 5)
    return total


def remainder(a: Any, n: Any) -> Any:
    total = 0
    for i in range(n):
        total += 100 % (5 - i)
    return total


def quotient(a: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += 1 / (i - 5)
    return total


def root(a: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += math.sqrt(5.0 - i)
    return total


def undefined(a: Any, n: Any) -> Any:
    for i in range(n - 25):
        s = a[i]
    return s


def raised(a: Any, n: Any) -> Any:
    for i in range(n):
        if a[i] > 5.5:
            raise ValueError("too large")
    return n


def asserted(a: Any, n: Any) -> Any:
    for i in range(n):
        assert a[i] < 5.5, "too large"


def in_a_branch(a: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if a[i] > 3:
            s += a[i + 10]
    return s


def then_another(a: Any, c: Any) -> None:
    for i in range(len(a)):
        c[i + 1] -= 2
    a[0] = 9


def written_when_all_is_known(a: Any, c: Any) -> Any:
    c[1] -= 2
    a[:2] += 1
    return float(a[0]) % float(c[0])


@pytest.mark.parametrize("function", [then_another, written_when_all_is_known])
def test_exceptions_leave_arguments_as_python_does(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for size in (2, 30, 400):
        ours, theirs = (array(size), array(size) * 0), (array(size), array(size) * 0)
        for call, arrays in ((compiled, ours), (function, theirs)):
            with pytest.raises((IndexError, ZeroDivisionError)):
                call(*arrays)
        assert all(map(np.array_equal, ours, theirs))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_comparison_with_nan(compare: Callable[..., Any]) -> None:
    def chosen(a: Any, x: Any) -> Any:
        return a + 1 if compare(x, float("nan")) else a * 3

    compiled = jk.jit(chosen)
    for x in (1.5, float("nan"), float("inf"), -2.0):
        assert np.array_equal(compiled(np.ones(500), x), chosen(np.ones(500), x))
    assert compiled.stats().compiles == 1


@pytest.mark.parametrize(
    "function",
    [
        beyond, beyond_unread, written_beyond, before_the_first, divided, remainder, quotient, root, undefined, raised,
        asserted, in_a_branch,
    ],
)  # fmt: skip
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_errors(function: Callable[..., Any], backend: str) -> None:
    agree(function, lambda: array(20), given(25), backend=backend)


def test_calls_with_and_without_errors_alternate() -> None:
    compiled = jk.jit(written_beyond)
    for n in (20, 25, 19, 30, 20):
        one, other = array(20), array(20)
        if n > 20:
            with pytest.raises(IndexError, match="index 20 is out of bounds for axis 0 with size 20"):
                compiled(one, n)
            with pytest.raises(IndexError):
                written_beyond(other, n)
        else:
            compiled(one, n)
            written_beyond(other, n)
        assert np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("is_loop", [False, True])
def test_floats_without_an_int_value(dtype: str, *, is_loop: bool) -> None:
    def straight(a: Any, x: Any, y: Any) -> None:
        a[1] = x * 2
        a[3:] = y[0]

    def looped(a: Any, x: Any, y: Any) -> None:
        for i in range(len(a)):
            a[i] = y[0] + x

    function = looped if is_loop else straight
    compiled = jk.jit(function)
    for x in (3.0, math.nan, math.inf, -2.0, 1e30, 200.0, 0.25):
        for y in (1.5, math.inf, math.nan, 2.0**63):
            found = []
            for call in (compiled, function):
                a = np.arange(500).astype(dtype)
                try:
                    call(a, x, np.full(3, y))
                except (OverflowError, ValueError) as error:
                    found.append((a.tolist(), str(error)))
                else:
                    found.append((a.tolist(), ""))
            assert found[0] == found[1]
