"""Reductions over different dimensions fused into one kernel, also of broadcast operands."""

import itertools
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

SUMMED: dict[str, Any] = {
    "a number along x": lambda m, x, w: np.sum(np.full(x.shape, m)),
    "a number along w": lambda m, x, w: np.sum(np.full(w.shape, m)),
    "a number along rows": lambda m, x, w: np.prod(np.full(w.shape[1:], m)),
    "x": lambda m, x, w: np.sum(x),
    "x and a number": lambda m, x, w: np.max(x * m),
    "w": lambda m, x, w: np.sum(w),
    "w and x": lambda m, x, w: np.sum(w * x[:, None]),
    "x, in every row of w": lambda m, x, w: np.sum(np.broadcast_to(x[:, None], w.shape)),
}


@pytest.mark.parametrize("columns", [5, 7])
def test_pairs(columns: int) -> None:
    x, w, m = np.linspace(1, 2, 5), np.ones((5, columns)), 1.5
    for one, other in itertools.combinations(SUMMED.values(), 2):

        def both(m: Any, x: Any, w: Any, one: Any = one, other: Any = other) -> Any:
            return one(m, x, w) + 10 * other(m, x, w)

        np.testing.assert_allclose(jk.jit(both)(m, x, w), both(m, x, w), rtol=1e-13)
