"""`sum` of Python's floats has the bits of this Python's: compensated from 3.12 on, but not of NumPy's numbers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

LISTS = {
    "cancelling": [1e16, 1.0, -1e16, 0.5],
    "tenths": [0.1] * 10,
    "zeros": [-0.0, -0.0, -0.0],
    "infinite": [1.0, math.inf, 1e300, 3.0],
    "opposite": [math.inf, 1.0, -math.inf],
    "nan": [1e16, math.nan, 1.0],
    "overflowing": [1e308, 1e308, -1e308, 1.0],
    "random": [*(np.random.default_rng(3).standard_normal(50) * 10.0 ** np.random.default_rng(4).integers(-9, 9, 50))],
}


def of_floats(x: Any) -> Any:
    return sum(float(v) for v in x)


def of_products(x: Any) -> Any:
    return sum([float(v) * 3.0 for v in x], 0.5)


def of_some(x: Any) -> Any:
    return sum(float(v) for v in x if v != 0.125)


def of_elements(x: Any) -> Any:
    return sum(x)


def of_numbers_of_numpy(x: Any) -> Any:
    return sum(v * 2 for v in x)


def of_ints(x: Any) -> Any:
    return sum(int(v > 0) for v in x) + sum(i for i in range(len(x)))


def of_ints_from_a_float(x: Any) -> Any:
    return sum((int(v > 0) for v in x), 0.25)


def of_a_grown_list(x: Any) -> Any:
    grown = []
    for v in x:
        grown.append(float(v) / 3)  # noqa: PERF401  # a list that grows
    return sum(grown)


def of_few(x: Any) -> Any:
    return sum((float(x[0]), 1, float(x[1]), True, float(x[2])))


def of_few_and_numpy(x: Any) -> Any:
    return sum([float(x[0]), 1.0, x[1], float(x[2])], 2)


def nested(x: Any) -> Any:
    return sum(sum(float(v) * i for v in x) for i in range(3))


@pytest.mark.per_push(40)
@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize(
    "function",
    [
        of_floats, of_products, of_some, of_elements, of_numbers_of_numpy, of_ints, of_ints_from_a_float,
        of_a_grown_list, of_few, of_few_and_numpy, nested,
    ],
)  # fmt: skip
def test_sums_have_the_bits_of_python(function: Callable[..., Any], name: str) -> None:
    x = np.array(LISTS[name], float)
    with np.errstate(all="ignore"):
        found, expected = jk.jit(function, strict=True, opt_level=1)(x), function(x)
    assert type(found) is type(expected)
    np.testing.assert_array_equal(np.array(found).view(np.uint64), np.array(expected).view(np.uint64))


def of_arguments(values: Any, function: Any = sum) -> Any:
    return function(values), sum(values, 1), sum(v - 0.1 for v in values)


@pytest.mark.per_push
@pytest.mark.parametrize("name", LISTS)
def test_sums_of_arguments(name: str) -> None:
    called = jk.jit(of_arguments, opt_level=1)
    np.testing.assert_array_equal(called(LISTS[name]), of_arguments(LISTS[name]))
