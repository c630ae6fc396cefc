"""Loops with data-dependent exits, and variables that are rebound to another array in each iteration."""

from typing import Any

import numpy as np
from jitted import agree, array, given, reasons


def until_small(x: Any, most: float) -> Any:
    y = x * 1.0
    while y.sum() > most:
        y = y * 0.9
    return y


def converged(a: Any, b: Any, tolerance: float) -> Any:
    x = np.zeros_like(b)
    diagonal = np.diag(a)
    rest = a - np.diag(diagonal)
    rounds, error = 0, tolerance * 2
    while error > tolerance and rounds < 1000:
        new = (b - rest @ x) / diagonal
        error = np.abs(new - x).max()
        x = new
        rounds += 1
    return x, rounds


def also_named(x: Any, most: float) -> Any:
    y = x * 1.0
    z = y
    while y.sum() > most:
        y = y * 0.9
    z[0] = 7
    return y, z


def in_a_list(x: Any, most: float) -> Any:
    y = x * 1.0
    kept = [y]
    while y.sum() > most:
        y = y * 0.9
    y[0] = 7
    return y, kept[0]


def swapped(x: Any, rounds: int) -> Any:
    one, other = x + 1, x - 1
    kept = one
    for _ in range(rounds):
        other[:] = one * 0.5
        one, other = other, one
    kept[0] = 7
    return one, other, kept


def test_zero_and_many_iterations() -> None:
    for most in (5.0, 5e9):
        compiled = agree(until_small, lambda: array(30) + 3, given(most))
        assert not reasons(compiled)
    matrix = np.eye(20) * 90 + array(20, 20)
    for tolerance in (1e-9, 1e9):
        compiled = agree(converged, given(matrix), lambda: array(20, seed=2), given(tolerance))
        assert not reasons(compiled)


def test_changed_arrays_with_other_references() -> None:
    """Loops that change an array of two names fall back to NumPy in calls without iterations."""
    for function in (also_named, in_a_list):
        for most in (5.0, 5e9):
            agree(function, lambda: array(30) + 3, given(most))
    for rounds in (0, 1, 2, 5):
        agree(swapped, lambda: array(30), given(rounds))


def cell(x: Any, w: Any, u: Any, b: Any) -> Any:
    """Nothing says that a quarter of the gates is as long as a state, but that it is so in the call."""
    h, c = np.zeros(u.shape[0]), np.zeros(u.shape[0])
    for t in range(x.shape[0]):
        i, f, g, o = np.split(x[t] @ w + h @ u + b, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    return h, c


def test_loop_invariant_shapes() -> None:
    for n, gates in ((8, 32), (5, 20), (5, 24), (1, 4)):
        shapes = ((30, 3), (3, gates), (n, gates), (gates,))
        compiled = agree(cell, *(given(array(*shape, seed=i) / 10) for i, shape in enumerate(shapes)))
        assert gates != 4 * n or not reasons(compiled)
