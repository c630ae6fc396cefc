"""Ranges whose step is known only at run time, for all sizes and steps."""

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
