"""Functions of some two hundred lines with thirty or more branches and loops, in the style of users, and deep loops."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.benchmarks.long_functions.arrays import arrays
from jitkernels.benchmarks.long_functions.deep import four_deep, six_deep
from jitkernels.benchmarks.long_functions.helped import helped
from jitkernels.benchmarks.long_functions.nests import nests
from jitkernels.benchmarks.long_functions.particles import particles
from jitkernels.benchmarks.long_functions.scalars import scalars


def _random(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).random(shape)


def _symmetric(n: int) -> Any:
    matrix = _random(n, n)
    return matrix + matrix.T + 2 * n * np.eye(n)


FUNCTIONS: dict[Callable[..., Any], Callable[[], tuple[Any, ...]]] = {
    scalars: lambda: (4711, 200, 1e-6),
    arrays: lambda: (_random(40, 50), _symmetric(20), 30, 1e-6),
    particles: lambda: (60 * _random(100), _random(100) - 0.5, 60, 20),
    nests: lambda: (_random(2, 3, 12, 14), _random(4, 3, 3, 3) - 0.5, _random(4), 4 * _random(16, 16)),
    helped: lambda: (_random(12, 3), _random(12, 3) - 0.5, np.cumsum(_random(20)), _random(20), 40),
    four_deep: lambda: (_random(6), _random(7)[:6].copy(), 6),
    six_deep: lambda: (_random(3), _random(4)[:3].copy(), 3),
}
"""The functions and their argument factories, which return new arrays each time."""
