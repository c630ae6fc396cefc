"""Indices that need no bounds check: what conditions, NumPy's operations and narrow dtypes say about ints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.control_flow.scalar_emitter import ScalarEmitter

Program = Callable[..., Any]


def behind_the_first(x: Any, at: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i == 0:
            out[i] = x[i]
        else:
            out[i] = x[i] - x[i - 1]
    return out


def before_the_last(x: Any, at: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i != len(x) - 1:
            out[i] = x[i + 1]
    return out


def of_bytes(x: Any, at: Any) -> Any:
    counts = np.zeros(256)
    for i in range(len(at)):
        counts[at[i]] += x[0]
    return counts


def of_remainders(x: Any, at: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[(i - np.int64(at[i % len(at)])) % len(x)]
    return out


def of_extremes(x: Any, at: Any) -> Any:
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[np.minimum(np.maximum(np.int64(at[i % len(at)]) - 3, 0), len(x) - 1)]
    return out


def behind_another(x: Any, at: Any) -> Any:
    """What differs from a number in the middle may be the first."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        if i != 1:
            out[i] = x[i - 1]
    return out


def of_signed_bytes(x: Any, at: Any) -> Any:
    """Indices of 128 and more are counted from the end."""
    counts = np.zeros(128)
    for i in range(len(at)):
        counts[np.int8(at[i])] += x[0]
    return counts


def of_signed_remainders(x: Any, at: Any) -> Any:
    """The sign of NumPy's remainders is that of the divisor."""
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = x[(i - np.int64(at[i % len(at)])) % -len(x)]
    return out


@pytest.mark.per_push
@pytest.mark.parametrize("n", [2, 3, 9])
@pytest.mark.parametrize("program", [behind_the_first, before_the_last, of_bytes, of_remainders, of_extremes])
def test_proven(program: Program, n: int) -> None:
    function = check(program, n)
    assert "bounded" not in str(function.explain(*arguments(n)))


@pytest.mark.per_push
@pytest.mark.parametrize("n", [2, 3, 9])
@pytest.mark.parametrize("program", [behind_another, of_signed_bytes, of_signed_remainders])
def test_checked(program: Program, n: int) -> None:
    check(program, n)


def arguments(n: int) -> tuple[Any, ...]:
    random = np.random.default_rng(n)
    return random.random(n), random.integers(0, 256, 2 * n).astype(np.uint8)


def check(program: Program, n: int) -> Any:
    function = jk.jit(program, strict=True)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(function(*arguments(n)), program(*arguments(n)))
    return function


@pytest.mark.per_push
def test_neighbours_on_a_ring_are_selected_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The remainder of an int that is at most one divisor away takes no division, which takes longer than the rest."""
    divided: list[Any] = []
    selected: list[Any] = []
    divide, select = ScalarEmitter._division_by_positive, ScalarEmitter._wrapped

    def noted_division(*arguments: Any) -> Any:
        divided.append(arguments)
        return divide(*arguments)

    def noted_selection(*arguments: Any) -> Any:
        selected.append(arguments)
        return select(*arguments)

    monkeypatch.setattr(ScalarEmitter, "_division_by_positive", noted_division)
    monkeypatch.setattr(ScalarEmitter, "_wrapped", noted_selection)

    def ring(u: Any) -> Any:
        n, result = len(u), u.copy()
        for i in range(n):
            result[i] = u[(i - 1) % n] + u[(i + 1) % n]
        return result

    u = np.random.default_rng(1).random(37)
    np.testing.assert_array_equal(jk.jit(ring, strict=True, cache=False)(u), ring(u))
    assert selected
    assert not divided
