"""Scalar expansion beside exceptions, element types, optimization levels and derivatives."""

import cmath
import math
from typing import Any

import numpy as np
import pytest
from test_scalar_expansion import Program, arguments, ranks, three_loops, windows

import jitkernels as jk


def roots_in_order(x: Any, w: Any) -> Any:
    """Raises ValueError for negative elements, after some results have been written."""
    out = np.zeros(len(x))
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[i] += x[i, k] * math.exp(math.sqrt(w[k] + 3))
    return out


def test_errors() -> None:
    """An element of which a function raises is an error, whether it is found before the outer loop or in it."""
    x, w = arguments((4, 6))
    compiled = jk.jit(roots_in_order)
    np.testing.assert_allclose(compiled(x, w), roots_in_order(x, w), rtol=1e-12)
    w[4] = -8
    for _ in range(2):
        with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input"):
            compiled(x, w)
    assert compiled(x[:0], w).shape == (0,)


def test_float32_and_complex_elements() -> None:
    def rotated(z: Any, n: Any) -> Any:
        out = np.zeros(n, z.dtype)
        for i in range(n):
            for k in range(len(z)):
                out[i] += z[k] * cmath.exp(1j * z[k].imag) * (i + 1)
        return out

    z = np.random.default_rng(3).standard_normal((9, 2)).view(np.complex128)[:, 0]
    np.testing.assert_allclose(jk.jit(rotated, strict=True)(z, 5), rotated(z, 5), rtol=1e-12)
    x, w = (one.astype(np.float32) for one in arguments((6, 9)))
    for function in (windows, three_loops):
        np.testing.assert_allclose(jk.jit(function, strict=True)(x, w), function(x, w), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("function", [windows, three_loops, ranks], ids=lambda one: one.__name__)
def test_levels_and_gradients(function: Program) -> None:
    """The transform comes after derivatives; the lowest level has none."""
    x, w = arguments((40, 33))
    for config in ({"opt_level": 3}, {"opt_level": 2}, {"opt_level": 1}):
        np.testing.assert_allclose(jk.jit(function, **config)(x, w), function(x, w), rtol=1e-12, atol=1e-12)
    if function is windows:
        slope = jk.grad(lambda x, w: windows(x, w).sum(), argnums=0)(x, w)
        np.testing.assert_allclose(slope, np.broadcast_to(0.54 - 0.46 * np.cos(w[1] * np.arange(33)), x.shape))
