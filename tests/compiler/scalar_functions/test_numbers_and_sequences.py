"""Operators of a number and a list or tuple are Python's, but for those that numbers of NumPy have."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import given, same

import jitkernels as jk

NUMBERS = {
    "bool": True, "int": 3, "float": 2.0, "complex": 1j, "int64": np.int64(3), "uint8": np.uint8(2),
    "float32": np.float32(2), "float64": np.float64(2), "bool_": np.bool_(True),
    "0-d": np.array(3), "1-d": np.array([1.0, 2.0, 3.0]),
}  # fmt: skip
SEQUENCES: dict[str, Callable[[], Any]] = {
    "ints": given([1, 2, 3]),
    "floats": given((1.0, 2.0, 3.0)),
    "lists": given([[1, 2, 3], [4, 5, 6]]),
    "arrays": given((np.arange(3.0), np.ones(3))),
    "none": list,
}
OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.lshift, operator.matmul, operator.eq, operator.ne, operator.lt, operator.ge,
]  # fmt: skip


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result, or the type of the exception."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments)
    except Exception as error:  # noqa: BLE001  # whatever Python raises
        return type(error)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("function", OPERATORS, ids=lambda one: one.__name__)
@pytest.mark.per_push(30)
def test_operators(function: Callable[..., Any], number: str, sequence: str) -> None:
    def swapped(left: Any, right: Any) -> Any:
        return function(right, left)

    def forward(left: Any, right: Any) -> Any:
        return function(left, right)

    make = SEQUENCES[sequence]
    for one in (forward, swapped):
        same(outcome(jk.jit(one), NUMBERS[number], make()), outcome(one, NUMBERS[number], make()))


def repeated(x: Any) -> Any:
    count = x.argmax()
    return [0.0] * count, (x[0],) * np.count_nonzero(x > 0), x.max() + [1.0, 2.0]  # noqa: RUF005


def test_repeated_by_counts() -> None:
    x = np.array([2.0, -1.0, 5.0, 3.0])
    same(jk.jit(repeated)(x), repeated(x))
