"""Updates of arrays in loops: nothing is copied where the old elements are read before new ones are stored."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def two_recurrences(a: Any, b: Any) -> Any:
    """Reads the old rows of both arrays, also for the second one."""
    c, d = np.zeros_like(a), np.zeros_like(a)
    c[0], d[0] = a[0], b[0]
    for i in range(1, len(a)):
        scale = 2 + a[i] * c[i - 1]
        c[i] = b[i] / scale
        d[i] = (b[i] - a[i] * d[i - 1]) / scale
    return c, d


def crossed(a: Any, b: Any) -> Any:
    """Each array needs the old row of the other one: no order of the updates serves both."""
    c, d = a.copy(), b.copy()
    for i in range(1, len(a)):
        before = c[i] + c[i - 1]
        c[i] = d[i] + d[i - 1]
        d[i] = before
    return c, d


def crossed_in_one_row(a: Any, b: Any) -> Any:
    c, d = a.copy(), b.copy()
    for i in range(len(a)):
        c[0], d[0] = d[0] + a[i], c[0] - b[i]
    return c, d


def scaled_rows(a: Any, b: Any) -> Any:
    """A row is stored, read, and stored again."""
    c, total = np.zeros_like(a), np.zeros(len(a))
    c[0] = a[0]
    for i in range(1, len(a)):
        c[i] = c[i - 1] * a[i] + b[i]
        total[i] = c[i].sum() + 1
        c[i] /= total[i]
    return c, total


def three_versions(a: Any, b: Any) -> Any:
    c = a.copy()
    for i in range(1, len(a) - 1):
        c[i] += b[i]
        largest = c[i].max()
        c[i - 1] -= np.tanh(largest) * c[i]
        smallest = c[i - 1].min()
        c[i + 1] = (c[i] - c[i - 1]) / (2 + smallest**2)
    return c


def older_version_needed(a: Any, b: Any) -> Any:
    """The row before the first update is read after the second one."""
    c = a.copy()
    for i in range(len(a)):
        old = c[::-1] + b
        c[i] = b[i] + 1
        largest = c[i].max()
        c[i] = largest * b[i] - c[0]
        c[0] += old[i]
    return c


def branched(a: Any, b: Any) -> Any:
    c = a.copy()
    for i in range(1, len(a)):
        if b[i, 0] > 0.5:
            c[i] = c[i - 1] + b[i]
            c[i] /= 1 + c[i].sum()
        c[i - 1] *= 2
    return c


FUNCTIONS = (
    two_recurrences, crossed, crossed_in_one_row, scaled_rows, three_versions, older_version_needed, branched,
)  # fmt: skip


def arrays(rows: int, columns: int, dtype: Any) -> list[Any]:
    rng = np.random.default_rng([rows, columns])
    return [rng.random((rows, columns)).astype(dtype) for _ in range(2)]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_results(function: Callable[..., Any], dtype: Any) -> None:
    compiled = jk.jit(function)
    for rows, columns in [(1, 3), (2, 1), (3, 2), (7, 5), (40, 8), (19, 33)]:
        a, b = arrays(rows, columns, dtype)
        wide = [np.repeat(one, 2, axis=1)[:, ::2] for one in (a, b)]
        for given in ([a, b], wide, [a[::-1], b]):
            found, expected = compiled(*given), function(*given)
            for one, right in zip(*(got if type(got) is tuple else (got,) for got in (found, expected)), strict=True):
                error = np.abs(one - right).max() / (np.abs(right).max() or 1)
                assert one.dtype == right.dtype
                assert error < (1e-3 if dtype is np.float32 else 1e-9)


@pytest.mark.parametrize("function", [two_recurrences, scaled_rows, three_versions], ids=lambda one: one.__name__)
def test_nothing_is_copied(function: Callable[..., Any]) -> None:
    a, b = arrays(400, 8, np.float64)
    compiled = jk.jit(function)
    compiled(a, b)
    assert compiled.stats().arena_bytes < a.nbytes
