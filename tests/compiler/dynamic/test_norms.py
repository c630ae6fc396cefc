"""`numpy.linalg.norm` of slices at computed bounds, and by orders that only the compiled code knows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

P = np.array([0, 3, 7, 20])
X = np.random.default_rng(0).standard_normal(20)
ORDERS = (None, 1, 2, 3.5, 0, np.inf, -np.inf, -1)


def by(order: Any) -> Callable[..., Any]:
    def norms(x: Any, p: Any) -> Any:
        out = np.zeros(len(p) - 1)
        for i in range(len(p) - 1):
            out[i] = np.linalg.norm(x[p[i] : p[i + 1]] - 1, ord=order)
        return out

    return norms


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("order", ORDERS)
def test_of_slices(order: Any, dtype: str) -> None:
    compiled, plain, x = jk.jit(by(order)), by(order), (X * 5).astype(dtype)
    x[x == 1] = 2  # which has no reciprocal below
    for _ in range(2):
        np.testing.assert_allclose(compiled(x, P), plain(x, P), rtol=1e-6 if dtype == "float32" else 1e-13)
    if dtype != "int64":
        assert not compiled.explain(x, P).breaks


def of_slices(x: Any, p: Any, order: Any) -> Any:
    out = np.zeros(len(p) - 1)
    for i in range(len(p) - 1):
        out[i] = np.linalg.norm(x[p[i] : p[i + 1]], ord=order)
    return out


def of_rows(x: Any, p: Any, order: Any) -> Any:
    return np.linalg.norm(x.reshape(4, 5), ord=order, axis=1)


@pytest.mark.parametrize("first", [2.0, 0.0, np.inf])
@pytest.mark.parametrize("program", [of_slices, of_rows], ids=lambda program: program.__name__)
def test_traced_orders(program: Callable[..., Any], first: float) -> None:
    """Calls with orders that NumPy treats apart bail out."""
    compiled = jk.jit(program)
    for order in (first, 2.0, 1.0, 3.5, -0.5, np.inf, -np.inf, 0.0, 1.5):
        np.testing.assert_allclose(compiled(X, P, order), program(X, P, order), rtol=1e-13)


def test_concatenation_with_one_element() -> None:
    def bounds(mask: Any) -> Any:
        found = np.nonzero(mask)[0]
        return np.concatenate((np.array([-1]), found, np.array([len(mask)], found.dtype)))

    compiled = jk.jit(bounds)
    for mask in (X > 0, X > 9, X < 9):
        np.testing.assert_array_equal(compiled(mask), bounds(mask))
    assert not compiled.explain(X > 0).breaks
