"""Tuples of numbers that only the compiled code knows compare as Python's do: lexicographically."""

import itertools
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def compared(x: Any, y: Any) -> Any:
    found = np.zeros((len(x), 6), np.int64)
    for i in range(len(x)):
        a, b = (x[i, 0], x[i, 1]), (y[i, 0], y[i, 1])
        if a == b:
            found[i, 0] = 1
        if a != b:
            found[i, 1] = 1
        if a < b:
            found[i, 2] = 1
        if a <= b:
            found[i, 3] = 1
        if a > b:
            found[i, 4] = 1
        found[i, 5] = a >= b
    return found


def nested(x: Any) -> Any:
    count = 0
    for i in range(len(x) - 2):
        if (x[i], (x[i + 1], 1)) < (x[i + 1], (x[i + 2], 0)) <= (3, (2, 2)):
            count += 1
        longer: Any = (x[i], x[i + 1])
        if longer == (x[i + 1],) or (x[i], 1) == (x[i + 1], 1):
            count += 100
        if (x[i],) < (x[i], x[i + 1]) and (x[i], x[i + 1]) > (x[i],):
            count += 10_000
    return count


def walked(steps: Any, by: Any) -> Any:
    at, path = (steps.shape[0] - 1, steps.shape[1] - 1), []
    while at != (0, 0):
        step = steps[at[0], at[1]]
        at = (at[0] - by[step, 0], at[1] - by[step, 1])
        path.append(at)
    return path


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.float32])
def test_tuples_of_two(dtype: Any) -> None:
    values = np.array([*itertools.product(range(3), repeat=4)]).astype(dtype)
    if dtype is not np.int64:
        values[values == 2] = np.nan
    function = jk.jit(compared, strict=True)
    assert np.array_equal(function(values[:, :2], values[:, 2:]), compared(values[:, :2], values[:, 2:]))


def test_nested_tuples_and_others_of_another_length() -> None:
    x = np.random.default_rng(0).integers(0, 4, 200)
    assert jk.jit(nested, strict=True)(x) == nested(x)


def test_a_path_ends_where_a_tuple_is_reached() -> None:
    steps = np.random.default_rng(0).integers(0, 3, (9, 8))
    steps[0], steps[:, 0] = 1, 2
    by = np.array([[1, 1], [0, 1], [1, 0]])
    assert jk.jit(walked, strict=True)(steps, by) == walked(steps, by)
