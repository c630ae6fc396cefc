"""Algorithms as people write them: what they give, raise, and do to their arguments is that of the plain function.

`whole` are those that become code; why the others do not is what `left` says.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A function, arguments for a number of elements, and why it is left to NumPy: nothing where it is not."""

    function: Callable[..., Any]
    make: Callable[[int], tuple[Any, ...]]
    reason: str = ""


PROGRAMS: list[Program] = []


def whole(make: Callable[[int], tuple[Any, ...]]) -> Callable[[Any], Any]:
    """What becomes code."""
    return left(make, "")


def left(make: Callable[[int], tuple[Any, ...]], reason: str) -> Callable[[Any], Any]:
    """What is left to NumPy."""

    def keep(function: Any) -> Any:
        PROGRAMS.append(Program(function, make, reason))
        return function

    return keep


def vector(n: int, seed: int = 0) -> Any:
    return np.random.default_rng(n + seed).random(n)


def matrix(n: int, m: int) -> Any:
    return np.random.default_rng(n).random((n, m))


def numbers(n: int, most: int) -> Any:
    return np.random.default_rng(n).integers(0, most, n)


@whole(lambda n: (matrix(n, n) @ matrix(n, n).T + 5 * np.eye(n), vector(n), 1e-10))
def conjugate_gradient(a: Any, b: Any, tolerance: Any) -> Any:
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b) * 2):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < tolerance:
            break
        p = r + (new / rs) * p
        rs = new
    return x


@whole(lambda n: (numbers(n, 2), 5))
def growing_cells(cells: Any, steps: Any) -> Any:
    for _ in range(steps):
        new = cells.copy()
        for i in range(1, len(cells)):
            new[i] = cells[i - 1] + cells[i]
        cells = new
    return cells


@left(lambda n: (matrix(n, n), 0.5), "differs from round to round")
def neighbours(distances: Any, most: Any) -> Any:
    counts = np.zeros(len(distances), int)
    for i in range(len(distances)):
        near = np.where(distances[i] <= most)[0]
        counts[i] = len(near)
    return counts
