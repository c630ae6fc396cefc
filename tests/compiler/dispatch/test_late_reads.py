"""In-place changes by loops and branches of arrays whose old values are needed later as well."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def carried(x: Any, w: Any, k: Any, rounds: int) -> Any:
    """Backwards, tanh is needed again: of what the second loop writes over."""
    u, b = np.zeros(x.shape), w.copy()
    for _ in range(rounds):
        u[::2] = np.tanh(k)
    b[0] = np.tanh(u)
    for _ in range(rounds):
        u = np.sin(np.mean(b * np.sin(x), axis=0))
    return np.sum(u * np.cos(u))


def viewed(x: Any, w: Any, k: Any, rounds: int) -> Any:
    """A view is read before and behind a branch that writes to what it is a view of."""
    u = x * k
    for _ in range(rounds):
        u[::2] += np.sin(x[0])
    p = u.reshape(1, -1)
    w[1:2] = np.exp(p) * 0.1
    z = p * 3
    if np.sum(w) > 0:
        u[0] = 17.0
    return np.sum(u) + np.sum(w * x) + np.sum(z * z)


def replaced(x: Any, w: Any, k: Any, rounds: int) -> Any:
    """A round gives a variable another array, which a branch needs as it was."""
    u, s, t = np.sin(x), k * 0.5, 0.0
    for i in range(rounds):
        if i % 2 == 0:
            u = np.sin(w[1] * 0.5)
            u += np.sin(x)
        else:
            s = np.tanh(w[1, 2])
        u[-1] = np.tanh(s + np.mean(u))
        u = np.sin(x)
        t = t + s
    return t + np.sum(u * np.cos(u)) + s * k


@pytest.mark.parametrize("function", [carried, viewed, replaced])
def test_levels(function: Any) -> None:
    x, w, k = np.linspace(0.1, 1, 6), np.cos(np.arange(36.0)).reshape(6, 6), 0.5
    expected = function(x.copy(), w.copy(), k, 9)
    slope = (function(x, w.copy(), k + 1e-5, 9) - function(x, w.copy(), k - 1e-5, 9)) / 2e-5
    for level in range(4):
        value = jk.jit(function, opt_level=level)(x.copy(), w.copy(), k, 9)
        np.testing.assert_allclose(value, expected, rtol=1e-13)
        found = jk.jit(jk.grad(function, argnums=2), opt_level=level)(x, w, k, 9)
        np.testing.assert_allclose(found, slope, rtol=1e-7)
