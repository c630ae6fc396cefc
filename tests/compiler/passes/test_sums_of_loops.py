"""Sums that loops add up in vectors, in another order than Python, and checks of floats that wait for a loop's end."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.ir.config import JitConfig

SIZES = [0, 1, 2, 7, 16, 33, 100, 257]


def total(x: Any, y: Any) -> Any:
    s = x.dtype.type(0)
    for i in range(len(x)):
        s += x[i] * y[i]
    return s


def several(x: Any, y: Any) -> Any:
    a = b = c = 0.0
    for i in range(len(x)):
        a += x[i]
        b -= y[i]
        c = x[i] + c + y[i]
    return a, b, c


def read_meanwhile(x: Any, y: Any) -> Any:
    """Running sums are in order."""
    s, out = 0.0, np.zeros(len(x))
    for i in range(len(x)):
        s += x[i] * y[i]
        out[i] = s
    return s, out


def compensated(x: Any, y: Any) -> Any:
    """Kahan's sum, which another order would undo."""
    s = c = 0.0
    for i in range(len(x)):
        term = x[i] - c
        after = s + term
        c = (after - s) - term
        s = after
    return s, c


def elements(x: Any, y: Any) -> Any:
    out = np.zeros((3, 2), x.dtype)
    for k in range(3):
        for i in range(len(x)):
            out[k, 1] += x[i] * y[i]
            out[k, 0] -= y[i]
    return out


def same_element_read(x: Any, y: Any) -> Any:
    out = np.ones(max(len(x), 1))
    for i in range(len(x)):
        out[0] += x[i]
        out[i] = out[0] + y[i]
    return out


def with_roots(x: Any, y: Any) -> Any:
    a = b = 0.0
    for i in range(len(x)):
        r = math.sqrt(x[i] * x[i] + y[i] * y[i])
        a += r
        b += math.exp(-r) / (1 + r)
    return a, b


def under_conditions(x: Any, y: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] > y[i]:
            s += x[i]
    return s


def under_several_conditions(x: Any, y: Any) -> Any:
    s = t = 0.0
    for i in range(len(x)):
        t += y[i]
        if x[i] > y[i]:
            s += x[i]
            s -= 0.5 * y[i]
            if x[i] > 1:
                t += 1.0
        elif x[i] < -y[i]:
            s += 0.5
        else:
            t -= x[i]
        s += 0.25
    return s, t


def until_enough(x: Any, y: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] > 2:
            s += y[i]
            break
        s += x[i]
    return s


def read_by_the_condition(x: Any, y: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if s < 1:
            s += abs(x[i])
        else:
            s -= abs(y[i])
    return s, s


def either_sum(x: Any, y: Any) -> Any:
    """A branch that exchanges sums does not only add to them."""
    s, t = 0.0, 1.0
    for i in range(len(x)):
        if x[i] > 0:
            s, t = t, s
        s += x[i]
        t += y[i]
    return s, t


def negative_zeros(x: Any, y: Any) -> Any:
    s = x.dtype.type(-0.0)
    for i in range(len(x)):
        if x[i] > 1e9:
            s += x[i]
    return np.signbit(s), s


def of_rows(x: Any, y: Any) -> Any:
    """Sums of sums: the outer one goes on in the inner loop."""
    s = 0.0
    for i in range(min(len(x), 9)):
        for j in range(len(y)):
            s += x[i] * y[j] + x[j]
    return s


PROGRAMS = [
    total, several, read_meanwhile, compensated, elements, same_element_read, with_roots, under_conditions, of_rows,
    under_several_conditions, until_enough, read_by_the_condition, either_sum, negative_zeros,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_are_those_of_python(function: Callable[..., Any], dtype: str) -> None:
    compiled = jk.jit(function, strict=True)
    for size in SIZES:
        x, y = np.random.default_rng(size).standard_normal((2, size)).astype(dtype)
        for stride in (1, 2):
            u, v = np.repeat(x, stride)[::stride], np.repeat(y, stride)[::stride]
            results, expected = compiled(u, v), function(u, v)
            if not isinstance(expected, tuple):
                results, expected = (results,), (expected,)
            for one, right in zip(results, expected, strict=True):
                scale = max(1, size) * (1e-6 if dtype == "float32" else 1e-15)
                np.testing.assert_allclose(one, right, rtol=1e-5 if dtype == "float32" else 1e-12, atol=10 * scale)


@pytest.mark.parametrize(
    "function", [read_meanwhile, compensated, same_element_read, read_by_the_condition], ids=lambda one: one.__name__
)
def test_sums_that_loops_read_stay_in_order(function: Callable[..., Any]) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 300)) * np.logspace(-8, 8, 300)
    for one, right in zip(jk.jit(function, strict=True)(x, y), function(x, y), strict=True):
        np.testing.assert_array_equal(one, right)


@pytest.mark.parametrize("function", [total, several, elements, of_rows], ids=lambda one: one.__name__)
def test_low_levels_of_optimization_keep_the_order(function: Callable[..., Any]) -> None:
    x, y = np.random.default_rng(1).standard_normal((2, 300)) * np.logspace(-8, 8, 300)
    compiled = jk.jit(function, config=JitConfig(opt_level=1))
    np.testing.assert_array_equal(np.ravel(compiled(x, y)), np.ravel(function(x, y)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -0.0])
def test_special_values(bad: float) -> None:
    for size in (1, 5, 64):
        for place in {0, size // 2, size - 1}:
            x, y = np.random.default_rng(size).random((2, size))
            x[place] = bad
            for function in (total, several, under_conditions, under_several_conditions):
                np.testing.assert_allclose(jk.jit(function)(x, y), function(x, y), rtol=1e-12)


def roots(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += math.sqrt(x[i])
    return s


def roots_into(x: Any, out: Any) -> Any:
    for i in range(len(x)):
        out[i] = math.sqrt(x[i]) + out[i]
    return out.sum()


def logarithms(x: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if x[i] != 3:
            s += math.log(x[i])
    return s


@pytest.mark.parametrize("size", [1, 3, 40, 200])
def test_checks_behind_a_loop_raise_as_python(size: int) -> None:
    for place in {0, size // 2, size - 1}:
        x = np.random.default_rng(size).random(size) + 0.5
        bad = x.copy()
        bad[place] = -1.0
        for function in (roots, logarithms):
            compiled = jk.jit(function)
            assert compiled(x) == pytest.approx(function(x), rel=1e-13)
            with pytest.raises(ValueError, match="math domain error"):
                compiled(bad)
        bad[place] = 3
        assert jk.jit(logarithms)(bad) == pytest.approx(logarithms(bad), rel=1e-13)


@pytest.mark.parametrize("place", [0, 5, 63])
def test_what_was_written_before_a_failing_check(place: int) -> None:
    x = np.random.default_rng(place).random(64)
    compiled = jk.jit(roots_into)
    ours, theirs = np.ones(64), np.ones(64)
    assert compiled(x, ours) == pytest.approx(roots_into(x, theirs), rel=1e-13)
    x[place] = -1.0
    for call, out in ((compiled, ours), (roots_into, theirs)):
        with pytest.raises(ValueError, match="math domain error"):
            call(x, out)
    np.testing.assert_allclose(ours, theirs, rtol=1e-13)
