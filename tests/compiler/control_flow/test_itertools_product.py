"""Loops over ``itertools.product`` and the like: compiled, or NumPy's where compiling would take too long."""

import itertools
import time
from itertools import product
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def of_shape(a: Any, n: Any) -> Any:
    t = 0.0
    for i, j in itertools.product(range(a.shape[0]), range(a.shape[1])):
        t += a[i, j] * (i + n * j)
    return t


def of_rows(a: Any, n: Any) -> Any:
    t = float(n)
    for x, y in product(a[0], a[-1]):
        t = max(t, x * y)
    return t


def thrice(a: Any, n: Any) -> Any:
    t = 0.0
    for i, j, k in product(range(n), repeat=3):
        t += a[i, j] * k
    return t


def of_others(a: Any, n: Any) -> Any:
    """Another function of that name, which needs a range."""

    def product(one: range) -> range:
        assert type(one) is range
        return one

    t = 0.0
    for i in product(range(len(a))):
        t += a[i, 0] * n
    return t


def from_one(a: Any, n: Any) -> Any:
    t = 0.0
    for i, j in itertools.product(range(1, a.shape[0]), [0, 1]):
        t += a[i, j] * n
    return t


@pytest.mark.parametrize("function", [of_shape, of_rows, thrice, of_others, from_one])
def test_products(function: Any) -> None:
    """Loops over products match Python, also for sizes that were not traced and empty ones."""
    compiled = jk.jit(function)
    for shape in ((30, 40), (3, 5), (1, 2), (40, 30)):
        for n in (3, 1, 0, 2):
            a = np.random.default_rng(0).random(shape)
            if function is thrice and min(shape) < n:
                with pytest.raises(IndexError):
                    compiled(a, n)
            else:
                assert np.isclose(compiled(a, n), function(a, n), rtol=1e-13)
    if function is of_shape:
        assert "loop" in str(compiled.explain(np.ones((30, 40)), 3))


def test_long_loops_are_not_unrolled() -> None:
    """Tracing stops after a moment, and the function falls back to NumPy."""

    @jk.jit
    def nearest(x: Any) -> Any:
        best = 9.0
        for a, b in itertools.combinations(x, 2):
            best = min(best, abs(a - b))
        return best

    x = np.random.default_rng(0).random(60)
    began = time.process_time()
    assert nearest(x) == nearest.__wrapped__(x)
    assert time.process_time() - began < 5
    assert "falls back to NumPy" in str(nearest.explain(x))
