"""A loop that is left takes no further value of its iterator, which the function may read behind the loop."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from jitted import array, same

import jitkernels as jk


def until_a_count(values: Iterator[Any], most: int) -> Any:
    total = 0.0
    for i, value in enumerate(values):
        if i == most:
            break
        total = total + value
    return total


def beside_a_range(values: Iterator[Any], most: int) -> Any:
    total = 0.0
    for i, value in zip(range(most + 1), values):  # noqa: B905
        total = total + i * value
    return total


def with_skipped_values(values: Iterator[Any], most: int) -> Any:
    total = 0.0
    for value in values:
        total = total + value * next(values, 1.0)
        most -= 1
        if most <= 0:
            break
    return total


def in_two_loops(values: Iterator[Any], most: int) -> Any:
    total = 0.0
    for i in range(3):
        for value in values:
            total = total * 2 + value
            if i < most:
                break
    return total


ITERATORS = {
    "generator": lambda x: (value * value for value in x),
    "array": iter,
    "list": lambda x: iter([x, x * 2, x * 3, x * 4, x * 5]),
    "range": lambda x: iter(range(len(x))),
    "map": lambda x: map(abs, x),
    "zip": lambda x: (one + other for one, other in zip(x, x[::-1], strict=True)),
}
LOOPS = (until_a_count, beside_a_range, with_skipped_values, in_two_loops)


@pytest.mark.parametrize("most", [0, 1, 3, 50])
@pytest.mark.parametrize("loop", LOOPS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", ITERATORS)
@pytest.mark.per_push(40)
def test_iterators_after_break(kind: str, loop: Callable[..., Any], most: int) -> None:
    make = ITERATORS[kind]

    def function(x: Any) -> Any:
        values = make(x)
        result = loop(values, most)
        return result, list(values)

    same(jk.jit(function)(array(7)), function(array(7)))
