"""Where functions with loops may be defined: methods, closures, defaults, static arguments, helpers, threads."""

# ruff: noqa: PERF401  # as people write it
import threading
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given

import jitkernels as jk


class Filter:
    def __init__(self) -> None:
        self.weights = np.arange(20.0)

    def total(self, n: int) -> Any:
        s = 0.0
        for i in range(n):
            if self.weights[i] > 3:
                s += self.weights[i]
        return s


def test_methods() -> None:
    one = Filter()
    compiled = jk.jit(one.total)
    assert compiled(20) == one.total(20)
    one.weights = np.arange(20.0) * 2
    assert compiled(20) == one.total(20)


def every(a: Any, *, k: int = 3, n: Any = None) -> Any:
    if n is None:
        n = len(a)
    s = 0
    for i in range(n):
        if i % k == 0:
            s += i
    return s


def test_keywords_and_defaults() -> None:
    compiled = jk.jit(every)
    a = np.arange(20.0)
    for keywords in ({}, {"k": 4}, {"n": 15}, {"n": 2, "k": 2}):
        assert compiled(a, **keywords) == every(a, **keywords)


def chosen(a: Any, mode: str) -> Any:
    s = 0.0
    for i in range(a.shape[0]):
        if mode == "sum":
            s += a[i]
        elif mode == "max":
            s = max(s, a[i])
        else:
            raise ValueError(mode)
    return s


@pytest.mark.parametrize("mode", ["sum", "max", "none"])
def test_branches_on_strings(mode: str) -> None:
    agree(chosen, lambda: array(20), given(mode))


def inside(a: Any) -> Any:
    def doubled(x: Any) -> Any:
        return x * 2

    factors = [x * 3 for x in (1, 2, 3)]
    s = 0.0
    with np.errstate(all="ignore"):
        for i in range(len(a)):
            s += doubled(a[i]) / factors[1]
    return s


def test_inner_functions_and_lists() -> None:
    agree(inside, lambda: array(20))


def test_threads() -> None:
    compiled, a = jk.jit(every), np.arange(20.0)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(100):
            if compiled(a, k=4) != 40:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong


def written_first(u: Any, v: Any, steps: Any) -> Any:
    """The first round writes to the caller's array, the others do not."""
    for i in range(steps):
        u[0] = i
        u = u * 0.5 + v
    return u


def test_writes_before_a_variable_is_rebound() -> None:
    agree(written_first, lambda: np.arange(20.0), lambda: np.ones(20), lambda: 12)


def _same_array_on_both_sides(x: Any, y: Any) -> Any:
    if x[0] > 0.5:
        z, s, word = y, 1.0, "one"
    else:
        z, s, word = y, 2.0, "one"
    z[0] = 9.0
    return z * s, word


def test_equal_values_on_both_sides_of_a_branch() -> None:
    agree(_same_array_on_both_sides, lambda: array(5), lambda: array(9))
