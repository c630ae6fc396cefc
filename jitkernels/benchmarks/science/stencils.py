"""Explicit finite differences on regular grids: heat, waves, advection."""

from typing import Any

import numpy as np

from jitkernels.benchmarks.science.science_program import science_program, uniform


def heat_arrays(u: Any, alpha: Any, steps: Any) -> Any:
    u = u.copy()
    for _ in range(steps):
        u[1:-1, 1:-1] += alpha * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
    return u


def heat_loops(u: Any, alpha: Any, steps: Any) -> Any:
    n, m = u.shape
    u = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                new[i, j] = u[i, j] + alpha * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4.0 * u[i, j])
        u, new = new, u
    return u


def heat_mixed(u: Any, alpha: Any, steps: Any) -> Any:
    for _ in range(steps):
        laplacian = np.zeros_like(u)
        laplacian[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]
        u = u + alpha * laplacian
    return u


science_program(
    lambda n, dtype: (uniform(n, n + 2, dtype=dtype), 0.1, 20),
    heat_arrays, heat_loops, heat_mixed,
    size=100, sizes=(3, 8, 33), dtypes=("float64", "float32"),
)  # fmt: skip
