"""Functions and methods that a call makes and returns, or passes over a graph break, are new ones in each call."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import array, same

import jitkernels as jk

log = logging.getLogger("returned_functions")


def accumulator(first: Any) -> Callable[[Any], Any]:
    values = [first]

    def add(value: Any) -> Any:
        values.append(value)
        return sum(values)

    return add


def closure(x: Any) -> Any:
    return accumulator(1.0), x * 2


def closure_of_an_array(x: Any) -> Any:
    return (lambda value: value * x), x + 1


def with_defaults(x: Any) -> Any:
    def add(value: Any, values: list[Any] = []) -> Any:  # noqa: B006
        values.append(value)
        return len(values)

    return add, x * 2


def method(x: Any) -> Any:
    return [1.0, 2.0].index, x * 2


def behind_a_break(x: Any) -> Any:
    add = accumulator(x[0])
    log.info("made")
    return (lambda value: value), add(3.0) * x


@pytest.mark.parametrize(
    "function", [closure, closure_of_an_array, with_defaults, method, behind_a_break], ids=lambda one: one.__name__
)
@pytest.mark.per_push
def test_returned_functions(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for x in (array(4), array(4) + 1, array(6)):
        (made, result), (expected_function, expected) = compiled(x), function(x)
        same(result, expected)
        for _ in range(2):
            same(made(2.0), expected_function(2.0))


def test_functions_of_modules_are_returned() -> None:
    compiled = jk.jit(lambda x: (accumulator, np.sqrt, len, x * 2))
    assert compiled(array(3))[:3] == (accumulator, np.sqrt, len)
