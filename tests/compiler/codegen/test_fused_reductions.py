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


def test_centred_arrays_are_not_stored() -> None:
    """Several nests of a batch norm and its gradient read ``x - mean(x)``: the mean is stored, and they read x."""
    axes = (0, 1, 2)

    def loss(x: Any, scale: Any, shift: Any) -> Any:
        centred = x - x.mean(axis=axes)
        z = centred * (scale / np.sqrt(np.mean(centred * centred, axis=axes) + 1e-5)) + shift
        return np.sum(np.maximum(z, 0) * x)

    random = np.random.default_rng(0)
    at = random.standard_normal((4, 6, 5, 8)), random.random(8) + 0.5, random.random(8)
    along = [random.standard_normal(array.shape) for array in at]
    gradient = jk.grad(loss, argnums=(0, 1, 2))
    found = sum(float(np.sum(part * way)) for part, way in zip(gradient(*at), along, strict=True))
    ends = [loss(*(array + step * way for array, way in zip(at, along, strict=True))) for step in (1e-6, -1e-6)]
    assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6)
    assert "writes subtract" not in str(gradient.explain(*at))
