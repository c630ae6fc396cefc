"""Powers of numbers in loops and branches become products, as those of arrays do."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

EXPONENTS = (0, 1, 2, 3, 4, -1, -2, -3, 0.5, -0.5, 1.5, -1.5, 5, 2.5)


def powers_in_loops(exponent: float) -> Any:
    def function(x: Any, bound: Any) -> Any:
        total, largest = np.zeros(len(x)), 0.0
        for i in range(len(x)):
            if x[i] < bound:
                total[i] = x[i] ** exponent
            else:
                k = i
                while k > 0 and x[k] >= bound:
                    total[i] += x[k] ** exponent
                    k -= 1
            largest = max(largest, total[i])
        return total, largest

    return function


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats(exponent: float, dtype: Any) -> None:
    function = powers_in_loops(exponent)
    compiled = jk.jit(function)
    for size in (0, 1, 2, 17):
        x = (0.1 + np.random.default_rng(size).random(size)).astype(dtype)
        for given in (x, np.repeat(x, 2)[::2]):
            for bound in (0.0, 0.6, 9.0):
                for one, right in zip(compiled(given, bound), function(given, bound), strict=True):
                    np.testing.assert_allclose(one, right, rtol=1e-5 if dtype is np.float32 else 1e-13)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7])
def test_integers(exponent: int) -> None:
    def function(x: Any) -> Any:
        total = 0
        for i in range(len(x)):
            if x[i] > 0:
                total += int(x[i]) ** exponent + i**exponent
        return total

    compiled = jk.jit(function)
    for dtype in (np.int64, np.int32, np.uint8):
        for size in (0, 1, 20):
            x = (np.arange(size) - 3).astype(dtype) % 5
            assert compiled(x) == function(x)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e-300, 5e-324])
def test_special_values(value: float) -> None:
    for exponent in EXPONENTS:
        function = powers_in_loops(exponent)
        x = np.array([value, 0.5])
        with np.errstate(all="ignore"):
            expected = function(x, 9.0)[0]
            np.testing.assert_allclose(jk.jit(function)(x, 9.0)[0], expected, rtol=1e-13)


def cubes(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            total += x[i] ** 3
    return total


def test_no_power_is_left() -> None:
    assert "power_float64" not in jk.jit(cubes).source(np.ones(5))
