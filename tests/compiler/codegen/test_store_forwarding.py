"""Loops that reduce rows of which one element was just stored: the last, the first, or neither."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.schedule.nest import phase_rules
from jitkernels.compiler.schedule.nest.nest_schedule import RecentStore
from jitkernels.tools.testing import guard_pages

Program = Callable[..., Any]
SIZES = (*range(1, 24), 31, 32, 33, 63)


def forward(low: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = b[i] - np.dot(low[i, :i], x[:i])
    return x


def back(low: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b) - 1, -1, -1):
        x[i] = b[i] - low[i, i + 1 :] @ x[i + 1 :]
    return x


def decomposition(low: Any, b: Any) -> Any:
    found = np.zeros_like(low)
    for i in range(len(b)):
        for j in range(i):
            found[i, j] = (low[i, j] - found[i, :j] @ found[j, :j]) / 4
        found[i, i] = np.sqrt(np.abs(low[i, i] - found[i, :i] @ found[i, :i]) + 1)
    return found


def own_past(low: Any, b: Any) -> Any:
    width = min(len(b), 5)
    y = np.zeros(len(b) + width, b.dtype)
    for i in range(len(b)):
        y[i + width] = b[i] + np.dot(low[0, :width], y[i : i + width])
    return y


def convolved(low: Any, b: Any) -> Any:
    c = np.zeros(len(b) + 1, b.dtype)
    c[0] = 1
    for i in range(1, len(c)):
        c[i] = np.sum(c[:i] * c[:i][::-1]) % 7
    return c


def multiplied(low: Any, b: Any) -> Any:
    x = np.ones(len(b) + 1, b.dtype)
    for i in range(len(b)):
        x[i + 1] = 1 + np.prod(x[: i + 1]) % 5
    return x


def several(low: Any, b: Any) -> Any:
    x, y = np.zeros_like(b), np.zeros_like(b)
    for i in range(len(b)):
        x[i] = b[i] + np.tanh(np.sum(x[:i]) / 64 - np.sum(y[:i] * x[:i]) / 64)
        y[i] = np.tanh(b[-i] + np.sum(x[: i + 1]) / 64)
    return x, y


def largest(low: Any, b: Any) -> Any:
    x = np.zeros(len(b) + 1, b.dtype)
    for i in range(len(b)):
        x[i + 1] = b[i] + np.max(x[: i + 1])
    return x


def rows(low: Any, b: Any) -> Any:
    low = low.copy()
    for i in range(len(b)):
        low[i, 0] = 0.1 * np.sum(low[: i + 1].sum(axis=1))
    return low


PROGRAMS = (forward, back, decomposition, own_past, convolved, multiplied, several, largest, rows)
OF_INTEGERS = (forward, back, own_past, convolved, multiplied, largest)
FIRST, LAST = RecentStore.FIRST, RecentStore.LAST
FRESH: dict[Program, set[RecentStore]] = {
    forward: {LAST}, back: {FIRST}, decomposition: {LAST}, own_past: {LAST}, several: {LAST}, largest: set()
}  # fmt: skip
"""What is summed with an element apart, and which one that is."""
CASES = [(one, dtype) for one in PROGRAMS for dtype in ("float32", "float64")]
CASES += [(one, "int64") for one in OF_INTEGERS]


def given(size: int, dtype: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(size)
    b = rng.integers(-3, 4, size).astype(dtype)
    if dtype == "int64":
        return np.eye(size, k=-1, dtype=dtype) + np.eye(size, k=1, dtype=dtype), b
    return rng.random((size, size)).astype(dtype) / dtype_of(dtype)(size), b


def dtype_of(name: str) -> Any:
    return np.dtype(name).type


@pytest.mark.parametrize(("program", "dtype"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_sums_of_every_length(program: Program, dtype: str) -> None:
    fast, tolerance = jk.jit(program), 2e-4 if dtype == "float32" else 1e-10
    for size in SIZES:
        arrays = given(size, dtype)
        found = fast(*[guard_pages.Guarded(one, "end").array for one in arrays])
        expected = program(*arrays)
        for one, other in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=str(size))
    assert "0 calls of NumPy" in str(fast.explain(*given(9, dtype)))


def flat(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("program", FRESH, ids=lambda one: one.__name__)
def test_reductions_of_recent_stores_are_detected(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[RecentStore | None] = set()
    rule = phase_rules._recent_store

    def noted(*arguments: Any) -> RecentStore | None:
        found.add(rule(*arguments))
        return rule(*arguments)

    monkeypatch.setattr(phase_rules, "_recent_store", noted)
    jk.jit(program)(*given(20, "float64"))
    assert found - {None} == FRESH[program]
