"""Equal arrays that loops of a branch update apart: one node of the graph, but memory of its own for each."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def swapped_rows(x: Any, y: Any, least: int) -> Any:
    if least < 0:
        return np.inf
    before, now = np.full(len(y) + 1, np.inf), np.full(len(y) + 1, np.inf)
    before[0] = 0.0
    for i in range(len(x)):
        for j in range(least, len(y)):
            now[j + 1] = abs(x[i] - y[j]) + min(before[j], before[j + 1], now[j])
        before, now = now, before
    return before[len(y)]


def three_counts(x: Any, y: Any, least: int) -> Any:
    total = 0.0
    if x[least] > 0:
        first, second, third = np.zeros(4), np.zeros(4), np.zeros(4)
        for i in range(len(x)):
            first[i % 4] += x[i]
        for j in range(len(y)):
            second[j % 4] += y[j] * first[j % 4]
        third[1] = second[2]
        total = first.sum() - second.sum() + third.sum()
    return total


def kept(x: Any, y: Any, least: int) -> Any:
    """The array as it was before the loop, which is read behind it."""
    result = 0.0
    if len(x) > least:
        start = x * 2.0
        now = start.copy()
        for i in range(1, len(x)):
            now[i] += now[i - 1]
        result = (now - start).sum()
    return result


def within_a_loop(x: Any, y: Any, least: int) -> Any:
    total = np.zeros(len(y))
    for k in range(3):
        before, now = np.zeros(len(y)), np.zeros(len(y))
        for i in range(len(x)):
            for j in range(1, len(y)):
                now[j] = max(before[j - 1] + x[i] * y[j], now[j - 1]) + k
            before, now = now, before
        total += before
    return total


@pytest.mark.parametrize("function", [swapped_rows, three_counts, kept, within_a_loop], ids=lambda one: one.__name__)
def test_equal_arrays(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    rng = np.random.default_rng(2)
    for m, n in ((9, 7), (30, 40)):
        x, y = rng.random(m), rng.random(n)
        for least in (0, 3):
            np.testing.assert_allclose(compiled(x, y, least), function(x, y, least), rtol=1e-12)
    np.testing.assert_allclose(jk.jit(swapped_rows)(x, y, -1), np.inf)
