"""``jitkernels bench linear-systems``: NumPy's linear algebra of small matrices and stacks in compiled functions."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import measure

JIT, NUMPY = "jit", "numpy"
ONE, STACK = (), (1000,)
CASES = ((ONE, 2), (ONE, 4), (ONE, 8), (ONE, 16), (ONE, 32), (ONE, 64), (STACK, 2), (STACK, 3), (STACK, 5), (STACK, 10))
"""Stacks, and the rows of their matrices."""


def solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def inv(a: Any, _: Any) -> Any:
    return np.linalg.inv(a)


def det(a: Any, _: Any) -> Any:
    return np.linalg.det(a)


def cholesky(a: Any, _: Any) -> Any:
    return np.linalg.cholesky(a)


FUNCTIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in (solve, inv, det, cholesky)}


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = {f"{line.group}, {line.case}": line.timings[NUMPY].seconds / line.timings[JIT].seconds for line in lines}
    least = min(ratios, key=lambda label: ratios[label])
    mean = geometric_mean([*ratios.values()])
    return Verdict(f"{mean:.2f} times as fast as NumPy, at least {ratios[least]:.2f} ({least})", ratios[least] >= 1)


def _names() -> list[str]:
    return [*FUNCTIONS]


@benchmark("linear-systems", verdict=verdict, against=NUMPY, parts=_names)
def linear_systems(settings: Settings) -> Iterator[Line]:
    """Systems of equations, inverses, determinants and Cholesky factors of float64, for 2 to 64 rows and in stacks."""
    rng = np.random.default_rng(0)
    for name in settings.some_of(_names()):
        compiled = jk.jit(FUNCTIONS[name], strict=True)
        for stack, rows in settings.limited(CASES):
            half = rng.random((*stack, rows, rows))
            matrices = half + np.swapaxes(half, -1, -2) + 2 * rows * np.eye(rows)
            right = rng.random((*stack, rows, 1))
            plain = partial(FUNCTIONS[name], matrices, right)
            calls = {JIT: partial(compiled, matrices, right), NUMPY: plain}
            calls[JIT]()
            case = f"{rows} rows" if stack == ONE else f"{stack[0]} of {rows} rows"
            yield Line(name, case, measure(calls, budget=settings.seconds), JIT)
