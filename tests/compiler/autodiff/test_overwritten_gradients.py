"""Gradients of loops that overwrite what they carry, and that carry values without derivatives."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def repeated(m: Any, k: int) -> Any:
    w = m * 1.0
    for _ in range(k):
        w = np.repeat(np.tanh(m)[:1], 3)
    return np.sum(w)


def multiplied(m: Any, k: int) -> Any:
    w = m * 1.0
    for _ in range(k):
        w = np.repeat((m * m)[:1], 3)
    return np.sum(w * w)


@pytest.mark.parametrize(("function", "expected"), [(repeated, 3 / np.cosh(1) ** 2), (multiplied, 12.0)])
def test_overwritten_values_get_zero_gradients(function: Any, expected: float) -> None:
    for level in (0, 2, 3):
        found = jk.jit(jk.grad(function), opt_level=level)(np.ones(3), 12)
        np.testing.assert_allclose(found, [expected, 0, 0], rtol=1e-12)


def settled(v: Any, scale: Any) -> Any:
    while np.sum(np.abs(v)) > 1:
        v = v * 0.5
    return np.sum(scale * v)


@pytest.mark.parametrize("start", [8.0, 0.125])
def test_loops_over_arguments_without_gradients(start: float) -> None:
    v = np.full(3, start)
    found = jk.grad(settled, argnums=1)(v, np.ones(3))
    assert found.tolist() == ([0.25] * 3 if start > 1 else [start] * 3)
    assert v.tolist() == [start] * 3
