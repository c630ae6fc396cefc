"""Loops and branches that change what variables only reach: lists in lists and objects, iterators of functions."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from jitted import array, same

import jitkernels as jk


class Record:
    def __init__(self) -> None:
        self.items = [1.0]
        self.named: dict[str, float] = {}
        self.numbers = iter(range(100))

    def push(self, value: float) -> None:
        self.items.append(value)


def list_in_a_list(x: Any) -> Any:
    lists = [[0.0], [1.0]]
    if x[0] > 0:
        lists[0].append(5.0)
    else:
        lists[1].pop()
    return lists


def entry_of_a_list_in_a_dict(x: Any) -> Any:
    table: dict[str, Any] = {"sums": [0.0], "n": 1}
    for i in range(len(x)):
        if x[i] > 0:
            table["sums"][0] += x[i]
    return float(table["sums"][0]) + table["n"]


def list_of_an_object(x: Any) -> Any:
    record = Record()
    if x[0] > 0:
        record.items.append(5.0)
    else:
        record.items.pop()
    return record.items


def method_of_an_object(x: Any) -> Any:
    record = Record()
    if x[0] > 0:
        record.push(5.0)
    else:
        record.push(7.0)
    return record.items


def dict_of_an_object(x: Any) -> Any:
    record = Record()
    if x[0] > 0:
        record.named["a"] = 1.0
    else:
        record.named["b"] = 2.0
    return record.named


def partial_of_a_method(x: Any) -> Any:
    items = ([0.0],)
    push = partial(items[0].append)
    if x[0] > 0:
        push(2.0)
    else:
        push(3.0)
    return items[0]


def iterator_in_a_list(x: Any) -> Any:
    values = [iter(x), iter(x * 2)]
    total = 0.0
    for k in range(len(x)):
        if x[k] > 0:
            total += next(values[0])
    return total, list(values[0]), list(values[1])


def iterator_in_a_while_loop(x: Any) -> Any:
    values = {"x": iter(x)}
    total = 0.0
    while total < 9:
        total += abs(next(values["x"]))
    return total, len(list(values["x"]))


def iterator_of_an_object(x: Any) -> Any:
    record = Record()
    total = 0.0
    for i in range(len(x)):
        total += next(record.numbers) * x[i]
    return total, next(record.numbers)


def iterator_of_a_function(x: Any) -> Any:
    def counter() -> Callable[[], int]:
        numbers: Iterator[int] = iter(range(100))
        return lambda: next(numbers)

    count = counter()
    total = 0.0
    for i in range(len(x)):
        total += count() * x[i]
    return total, count()


FUNCTIONS = [
    list_in_a_list, entry_of_a_list_in_a_dict, list_of_an_object, method_of_an_object, dict_of_an_object,
    partial_of_a_method, iterator_in_a_list, iterator_in_a_while_loop, iterator_of_an_object, iterator_of_a_function,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
@pytest.mark.per_push
def test_reachable_containers(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for x in (np.abs(array(30)), array(30) - 1, -np.abs(array(40)) - 1):
        for _ in range(2):
            same(compiled(x.copy()), function(x.copy()))
