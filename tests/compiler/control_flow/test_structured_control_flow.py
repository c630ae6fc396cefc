"""`fori_loop`, `while_loop`, `scan`, `cond` and `switch`: the same inside and outside of compiled functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import notes

import jitkernels as jk


def factorial(n: Any) -> Any:
    return jk.fori_loop(1, n + 1, lambda i, total: total * i, 1.0)


def fibonacci(n: Any) -> Any:
    return jk.fori_loop(0, n, lambda i, pair: (pair[1], pair[0] + pair[1]), (0.0, 1.0))


def relaxed(u: Any, n: Any) -> Any:
    return jk.fori_loop(0, n, lambda i, v: v * 0.5 + np.sin(v), u)


def root(x: Any) -> Any:
    found = jk.while_loop(
        lambda s: abs(s["y"] * s["y"] - x) > 1e-12, lambda s: {"y": 0.5 * (s["y"] + x / s["y"])}, {"y": x}
    )
    return found["y"]


def running(x: Any) -> Any:
    return jk.scan(lambda total, one: (total + one, total * one), 0.0, x)


def recurrent(x: Any, w: Any) -> Any:
    def step(h: Any, row: Any) -> Any:
        h = np.tanh(w @ h + row)
        return h, h * 2.0

    return jk.scan(step, np.zeros(w.shape[0]), x)


def chosen(x: Any) -> Any:
    return jk.cond(x[0] > 0.5, lambda v: (v * 2.0, v[1]), lambda v: (v - 1.0, v[2]), x)


def one_of(i: Any, x: Any) -> Any:
    return jk.switch(i[0], [lambda v: v[0], lambda v: v[1] * 3.0, lambda v: v[2] + 5.0], x)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape)


CASES: dict[Callable[..., Any], list[tuple[Any, ...]]] = {
    factorial: [(20,), (12,), (33,)],
    fibonacci: [(20,), (30,), (10,)],
    relaxed: [(numbers(9), 20)],
    root: [(2.0,), (9.5,)],
    running: [(numbers(30),), (numbers(12),)],
    recurrent: [(numbers(20, 6), numbers(6, 6) / 6)],
    chosen: [(numbers(5),), (numbers(5) - 1.0,)],
    one_of: [(np.array([i]), numbers(3)) for i in (-1, 0, 1, 2, 5)],
}


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__)
def test_equal_results_inside_and_outside_of_jit(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for arguments in CASES[function]:
        found, expected = compiled(*arguments), function(*arguments)
        many = expected if isinstance(expected, tuple) else (expected,)
        for one, other in zip(found if isinstance(found, tuple) else (found,), many, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    made = [one for kept in compiled._specializations.values() for one in kept]
    assert any(one.has_flows for one in made)
    assert not notes(compiled)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(jk.ArgumentError, match="after an iteration"):
        jk.fori_loop(0, 3, lambda i, v: (v, v), 1.0)
    with pytest.raises(jk.ArgumentError, match="neither"):
        jk.scan(lambda c, x: (c, x), 0.0)
    with pytest.raises(jk.ArgumentError, match="at least one"):
        jk.switch(0, [])
