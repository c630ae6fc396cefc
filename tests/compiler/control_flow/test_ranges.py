"""Ranges whose step is known only at run time, for all sizes and steps; ranges in variables."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import reasons

import jitkernels as jk


def sieve(n: Any, x: Any) -> Any:
    is_prime = np.ones(n, np.bool_)
    is_prime[:2] = False
    i = 2
    while i * i < n:
        if is_prime[i]:
            for j in range(i * i, n, i):
                is_prime[j] = False
        i += 1
    return is_prime


def divisors(n: Any, x: Any) -> Any:
    count = np.zeros(n + 1, np.int64)
    for i in range(1, n + 1):
        for j in range(i, n + 1, i):
            count[j] += 1
    return count


def passes(n: Any, x: Any) -> Any:
    """Distances that halve, as in sorting by Shell; the variable has its last value behind the loop."""
    found, width, last = x * 1, 1, -1
    while width < len(x):
        for begin in range(0, len(x) - width, 2 * width):
            found[begin] = found[begin] + found[begin + width]
            last = begin
        width *= 2
    return found, last


def numbered(n: Any, x: Any) -> Any:
    total = 0.0
    for i in range(1, n):
        for place, j in enumerate(range(0, len(x), i)):
            if place > 3:
                break
            total += x[j] * place
        else:
            total += 1
        for j in reversed(range(0, len(x), i)):
            total = total * 0.5 + x[j]
    return total


FUNCTIONS: list[Callable[[Any, Any], Any]] = [sieve, divisors, passes, numbered]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_specialization_serves_all_steps(function: Callable[[Any, Any], Any]) -> None:
    compiled = jk.jit(function)
    for n in (40, 300, 9, 1000, 33):
        x = np.sin(np.arange(float(n)))
        found, right = compiled(n, x), function(n, x)
        for one, other in (
            zip(np.atleast_1d(*found), np.atleast_1d(*right), strict=True) if function is passes else [(found, right)]
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not reasons(compiled)
    assert compiled.stats().compiles == 1


def by_elements(steps: Any, ends: Any) -> Any:
    total = 0
    for i in range(len(steps)):
        for j in range(1, ends[i], steps[i]):
            total += j
    return total


@pytest.mark.parametrize("dtype", ["int64", "int32"])
def test_negative_and_zero_steps_match_python(dtype: str) -> None:
    compiled = jk.jit(by_elements)
    for steps, ends in (
        ((1, 2, 3), (9, 8, 7)),
        ((2, 5, 1), (1, 0, -4)),
        ((-1, 2, -3), (-9, 8, -7)),
        ((3, 1, 1), (2**31 - 1,) * 3),
    ):
        given = np.array(steps, dtype), np.array([min(one, 50) for one in ends], dtype)
        assert compiled(*given) == by_elements(*given)
    with pytest.raises(ValueError, match="arg 3 must not be zero"):
        compiled(np.array([1, 0, 1], dtype), np.array([5, 5, 5], dtype))
    far = np.array([2**62, 2**63 - 1, 1], "int64"), np.array([2**63 - 1, 2**63 - 1, 3], "int64")
    assert jk.jit(by_elements)(*far) == by_elements(*far)


def diagonals(x: Any, offsets: Any, n: int) -> Any:
    """Sums along diagonals, as matrix profiles have them."""
    out = np.zeros(len(offsets))
    for k in range(len(offsets)):
        g = offsets[k]
        rows = range(min(n, n - g)) if g >= 0 else range(-g, min(n, n - g))
        total = 0.0
        for i in rows:
            total += x[i] * x[i + g]
        out[k] = total
    return out


def chosen(x: Any, a: Any) -> Any:
    indices = range(3, 20) if a[0] > 0 else range(8)
    total = 0.0
    for i in indices:
        total += x[i]
    return total


def without_else(x: Any, a: Any) -> Any:
    indices = range(5)
    if a[0] > 0:
        indices = range(a[0], a[0] + 7)
    total = 0.0
    for k, i in enumerate(indices):
        total += k * x[i]
    return total


def downwards(x: Any, a: Any) -> Any:
    indices = range(a[0] + 9, a[0], -2)
    total = 0.0
    for i in indices:
        total += x[i] * i
    return total


def carried(x: Any, a: Any) -> Any:
    """The range of the previous iteration."""
    indices = range(4)
    total = 0.0
    for k in range(len(a)):
        for i in indices:
            total += x[i]
        indices = range(a[k], a[k] + 9)
    return total


def empty(x: Any, a: Any) -> Any:
    indices = range(a[0], a[0] - 3) if a[0] > 0 else range(a[0])
    count = 0
    for i in indices:
        count += i
    return count


@pytest.mark.parametrize("function", [chosen, without_else, downwards, carried, empty])
@pytest.mark.parametrize("first", [3, 0, -3])
def test_ranges_in_variables(function: Any, first: int) -> None:
    if function in (downwards, carried) and first < 0:
        first = 7
    x, a = np.random.default_rng(0).random(40), np.array([first, 9, 4])
    compiled = jk.jit(function, strict=True)
    for values in (a, a + 1):
        np.testing.assert_allclose(compiled(x, values), function(x, values), rtol=1e-13)


def test_diagonals() -> None:
    x, offsets = np.random.default_rng(0).random(60), np.array([3, -2, 0, 5, -7, -59, 59])
    compiled = jk.jit(diagonals, strict=True)
    np.testing.assert_allclose(compiled(x, offsets, 60), diagonals(x, offsets, 60), rtol=1e-13)


def test_an_index_outside_of_the_array_raises() -> None:
    compiled = jk.jit(chosen, strict=True)
    with pytest.raises(IndexError):
        compiled(np.ones(10), np.array([1]))


def steps_differ(x: Any, a: Any) -> Any:
    indices = range(8, 2, -1) if a[0] > 0 else range(8)
    total = 0.0
    for i in indices:
        total += x[i] * i
    return total


def test_ranges_of_different_steps_are_not_selected() -> None:
    x = np.random.default_rng(0).random(40)
    for first in (1, -1):
        a = np.array([first])
        assert jk.jit(steps_differ)(x, a) == pytest.approx(steps_differ(x, a))
    with pytest.raises(jk.JitKernelsError, match="range"):
        jk.jit(steps_differ, strict=True)(x, np.array([1]))
