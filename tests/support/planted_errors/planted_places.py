"""The same in methods, nested functions, decorated ones and conditions, where source lines are easily lost."""
# ruff: noqa: B007, B023

import functools
import math
from typing import Any

import numpy as np
from planted import raised


class Model:
    """A class with methods."""

    def __init__(self) -> None:
        self.scale = 2.0

    @raised(make=lambda: (Model(), np.ones(5), 7))
    def method(self, x: Any, n: Any) -> Any:
        s = 0.0
        for i in range(n):
            s += self.scale * x[i]  # here
        return s

    @raised(make=lambda: (Model(), np.ones(5), 7))
    def attribute(self, x: Any, n: Any) -> Any:
        s = 0.0
        for i in range(n):
            s += x[0] * i
        return s * self.shift  # type: ignore[attr-defined]  # here


def _nested() -> Any:
    offset = 3

    @raised()
    def inner(x: Any, n: Any) -> Any:
        s = 0.0
        for i in range(n - 10):
            s += x[i + offset]  # here
        return s

    return inner


_nested()


def _same(function: Any) -> Any:
    return function


@raised()
@_same
@functools.lru_cache(maxsize=None) if False else _same
def decorated(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[  # here
            i
        ]
    return s


@raised()
def lambda_of_the_last(x: Any, n: Any) -> Any:
    calls = [lambda: x[k + 6] for k in range(5)]  # here
    s = 0.0
    for i in range(n):
        s += i
    for call in calls:
        s += call()  # type: ignore[no-untyped-call]
    return s


@raised()
def after_a_while(x: Any, n: Any) -> Any:
    i, s = 0, 0.0
    while i < n:
        s += x[i]  # here
        i += 1
    return s


@raised()
def in_a_conditional_expression(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += x[i] if x[0] < 0.0 else 1.0  # here
    return s


@raised()
def in_a_condition(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        if (
            s >= 0.0 and x[i] < 9.0  # here
        ):
            s += 1.0
    return s


@raised()
def in_a_while_condition(x: Any, n: Any) -> Any:
    i = 0
    while x[i] < 9.0:  # here
        i += 1
    return i


@raised()
def in_the_last_of_nested_loops(x: Any, n: Any) -> Any:
    m = np.ones((4, 9))
    s = 0.0
    for i in range(n):
        for j in range(4):
            for k in range(9):
                s += m[j, k]
        for j in range(4):
            for k in range(10):
                s += m[j, k]  # here
    return s


@raised()
def a_negative_root(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(n):
        s += math.sqrt(10.0 - i)  # here
    return s


@raised()
def a_zero_step(x: Any, n: Any) -> Any:
    s = 0.0
    for i in range(0, n, n - 20):  # here
        s += i
    return s


@raised()
def not_along(x: Any, n: Any) -> Any:
    s = 0.0
    for i in n:  # here
        s += i
    return s
