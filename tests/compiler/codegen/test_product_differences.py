"""Differences of two products: bitwise NumPy's, so that equal products cancel to zero."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from jitted import agree

FUNCTIONS: list[Callable[..., Any]] = [
    lambda a, b: np.sqrt(a * a - b * b),
    lambda a, b: a * b - b * a,
    lambda a, b: np.sqrt((2 * a) * (2 * a) - 4 * (a * a)) + b,
    lambda a, b: a * b[::-1] - np.square(a),
    lambda a, b: np.stack([a * b - b * b, a * a - b * a]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_differences_of_products(number: int, level: int, dtype: str) -> None:
    """In whole vectors and in the remainder."""
    rng = np.random.default_rng(number)
    for size in (1, 17, 1000):
        a = rng.normal(size=size).astype(dtype)
        b = np.where(rng.random(size) < 0.5, a, rng.normal(size=size) * a).astype(dtype)
        with np.errstate(invalid="ignore"):
            compiled = agree(FUNCTIONS[number], partial(np.copy, a), partial(np.copy, b), opt_level=level)
            expected, found = FUNCTIONS[number](a, b), compiled(a, b)
        np.testing.assert_array_equal(found, expected)
