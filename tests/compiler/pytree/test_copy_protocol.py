"""Copies by Python's modules `copy` and `pickle` are copies in compiled code, too."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, given, same

import jitkernels as jk


def written(x: Any, y: Any) -> Any:
    y[0] = 1
    x[-1] = 2
    return x, y


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy of containers": lambda x: copy.deepcopy({"x": [x, x[0]], "size": [len(x)]})["x"][0],
    "copy of a container": lambda x: copy.copy([x, 2.0])[0],
    "deepcopy of a row": lambda x: copy.deepcopy(x[1:]),
    "method": lambda x: x.__copy__(),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "selected": lambda x: copy.copy(x[x > -9]),
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("shape", [(5,), (4, 3)])
@pytest.mark.per_push
def test_copies(kind: str, shape: tuple[int, ...]) -> None:
    def function(x: Any) -> Any:
        return written(x, COPIES[kind](x))

    for order in ("C", "F"):
        got, expected = np.asarray(array(*shape), order=order), np.asarray(array(*shape), order=order)
        result, wanted = jk.jit(function)(got), function(expected)
        same(result, wanted)
        same(got, expected)
        assert np.shares_memory(*result) == np.shares_memory(*wanted)
        assert result[1].flags.f_contiguous == wanted[1].flags.f_contiguous


def of_numbers(x: Any, k: Any) -> Any:
    return copy.copy(k) * x, copy.deepcopy(k) + 1, copy.copy(len(x)), copy.deepcopy(x.sum()), copy.copy(x[0])


@pytest.mark.parametrize("k", [2, 2.5, 1j, True, np.float32(2), np.int64(3)])
@pytest.mark.per_push
def test_copies_of_numbers(k: Any) -> None:
    agree(of_numbers, lambda: array(5), given(k))


def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(20):
        y = copy.copy(x)
        y[0] += i
        total += y.sum()
    return total


def of_a_growing_list(x: Any) -> Any:
    found = []
    for value in x:
        if value > 0:
            found.append(value)  # noqa: PERF401
    other = copy.copy(found)
    other.append(5.0)
    return found, other


@pytest.mark.parametrize("function", [in_a_loop, of_a_growing_list])
def test_copies_in_loops(function: Callable[..., Any]) -> None:
    same(jk.jit(function)(array(20)), function(array(20)))
