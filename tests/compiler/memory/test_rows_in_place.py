"""Rows that nests, branches, loops and stores of one iteration update in turn: in the array's memory, in any order."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

Step = Callable[[Any, Any, int], None]


def shifted(y: Any, m: Any, i: int) -> None:
    y[i] -= m[i]


def scaled_if(y: Any, m: Any, i: int) -> None:
    if m[i] > 0.4:
        y[i] /= m[i] + 1.0


def either(y: Any, m: Any, i: int) -> None:
    if m[i] > 0.5:
        y[i] = y[i] * 2.0
        if y[i, 0] > 0.7:
            y[i, 1:] += 0.25
    else:
        y[i] = 0.5


def element(y: Any, m: Any, i: int) -> None:
    y[i, 1] = y[i, 0] + m[i]


def elements(y: Any, m: Any, i: int) -> None:
    for j in range(1, y.shape[1]):
        y[i, j] += 0.5 * y[i, j - 1]


def from_before(y: Any, m: Any, i: int) -> None:
    y[i] += 0.125 * y[i - 1]


def old_row(y: Any, m: Any, i: int) -> None:
    """Reads the row as it was before, after it was overwritten."""
    old = y[i] * 1.0
    y[i] = m[i]
    if m[i] > 0.3:
        y[i] += old


def view_kept(y: Any, m: Any, i: int) -> None:
    row = y[i]
    y[i, 1:] *= 1.5
    if m[i] < 0.6:
        row[0] = row[2]


STEPS = [shifted, scaled_if, either, element, elements, from_before, old_row, view_kept]


def program(first: Step, second: Step) -> Callable[..., Any]:
    def run(x: Any, m: Any) -> Any:
        y = x / 1
        for i in range(x.shape[0]):
            first(y, m, i)
            second(y, m, i)
        return y

    return run


def guarded(first: Step, second: Step) -> Callable[..., Any]:
    def run(x: Any, m: Any) -> Any:
        y = x / 1
        total = 0.0
        for i in range(x.shape[0]):
            if m[i] > 0.2:
                first(y, m, i)
                second(y, m, i)
            total += y[i, 0]
        return y, total

    return run


def in_arguments(first: Step, second: Step) -> Callable[..., Any]:
    def run(x: Any, m: Any) -> Any:
        for i in range(x.shape[0]):
            first(x, m, i)
            second(x, m, i)

    return run


@pytest.mark.parametrize("form", [program, guarded, in_arguments], ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("first", "second"), [*itertools.product(STEPS, STEPS)], ids=lambda one: one.__name__ if callable(one) else ""
)
def test_steps_of_rows(first: Step, second: Step, form: Callable[..., Any]) -> None:
    function = form(first, second)
    compiled = jk.jit(function, strict=True)
    rng = np.random.default_rng(3)
    for rows, columns in ((7, 5), (40, 9)):
        x, m = rng.random((rows, columns)), rng.random(rows)
        expected, got = (x.copy(), m.copy()), (x.copy(), m.copy())
        result, of_plain = compiled(*got), function(*expected)
        for left, right in zip((*got, result), (*expected, of_plain), strict=True):
            for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in (left, right)), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12) if other is not None else None


def test_cost_of_an_iteration() -> None:
    """An iteration touches its row, not the whole array: no copies of it between nest and branch."""

    def run(x: Any, m: Any) -> Any:
        y = x / 1
        for i in range(x.shape[0]):
            shifted(y, m, i)
            scaled_if(y, m, i)
        return y

    compiled = jk.jit(run, strict=True)
    x, m = np.ones((2000, 8)), np.ones(2000)
    compiled(x, m)
    assert "memory between kernels" not in str(compiled.explain()), "a copy of the array"
