"""Stencils in time loops: rows of any length, bitwise NumPy's results."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmarks.whole_programs import fdtd, heat_3d
from jitkernels.compiler.ir.config import JitConfig


def test_products_with_powers_of_two_are_exact() -> None:
    """They may be contracted with sums: results equal NumPy's to the last bit."""

    def waves(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            a[1:-1] = a[1:-1] + 0.125 * (b[2:] - 2.0 * b[1:-1] + b[:-2]) - 0.3 * b[1:-1]
            b[1:-1] -= 0.5 * a[1:-1] - 4.0 * np.square(a[2:]) * 0.25
        return a, b

    a, b = np.random.default_rng(0).random((2, 101)) - 0.5
    expected = waves(a.copy(), b.copy(), 5)
    for level in (0, 3):
        found = jk.jit(waves, config=JitConfig(opt_level=level))(a.copy(), b.copy(), 5)
        assert all(map(np.array_equal, found, expected))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_rows_of_any_length(dtype: str) -> None:
    """Remainders of one, two and three elements are computed, and nothing is written behind a row."""

    def moved(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] - a[1:-1, :-2]
            a[1:-1, 1:-1] = b[1:-1, 2:] - b[1:-1, :-2]
        return a

    fast = jk.jit(moved)
    for columns in range(3, 15):
        a, b = np.random.default_rng(columns).integers(0, 9, (2, 6, columns)).astype(dtype)
        expected = moved(a.copy(), b.copy(), 3)
        assert np.array_equal(fast(a, b, 3), expected)


def test_programs_of_the_benchmark_are_exact() -> None:
    drawn = np.random.default_rng(0)
    for side in (5, 8, 11):
        a, b = drawn.random((2, side, side, side))
        assert np.array_equal(jk.jit(heat_3d)(a.copy(), b.copy(), 9), heat_3d(a.copy(), b.copy(), 9))
    fields = [*drawn.random((3, 9, 14)), drawn.random(12)]
    assert np.array_equal(jk.jit(fdtd)(*map(np.copy, fields)), fdtd(*map(np.copy, fields)))
