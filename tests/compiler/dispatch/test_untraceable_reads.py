"""Reads of arrays or iterators that a graph cannot represent fall back to NumPy."""
# ruff: noqa: UP031, B007  # as people write it

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def text_of_a_number(a: Any, n: Any) -> Any:
    return a * len(str(a[0]))


def text_of_an_array(a: Any, n: Any) -> Any:
    return a * len(f"{a!r}")


def by_percent(a: Any, n: Any) -> Any:
    return a * len("%s" % a[0])


def in_a_list(a: Any, n: Any) -> Any:
    return a * len(str([a[0], a[1]]))


def text_of_a_count(a: Any, n: Any) -> Any:
    for i in range(n):
        a[i] += len(repr(i))
    return a


def next_in_rounds(a: Any, n: Any) -> Any:
    numbers, total = iter(range(100)), 0.0
    for i in range(n):
        total += a[i] * next(numbers)
    return total


def generator_in_a_branch(a: Any, n: Any) -> Any:
    numbers, total = (x * 2 for x in a), 0.0
    for i in range(n):
        if a[i] > 3:
            total += next(numbers)
    return total


def sums_of_what_is_left(a: Any, n: Any) -> Any:
    pairs, total = zip(a, a, strict=True), 0.0
    for i in range(n):
        total += sum(x * y for x, y in pairs)
    return total


@pytest.mark.parametrize(
    "function",
    [
        text_of_a_number, text_of_an_array, by_percent, in_a_list, text_of_a_count,
        next_in_rounds, generator_in_a_branch, sums_of_what_is_left,
    ],
)  # fmt: skip
def test_falls_back_to_numpy(function: Callable[..., Any]) -> None:
    compiled: Any = jk.jit(function)
    for n in (9, 12):
        a = np.arange(12.0)
        np.testing.assert_array_equal(compiled(a.copy(), n), function(a.copy(), n))
