"""Branches whose sides do not match: code for one side, and NumPy's results for calls that take the other one."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from jitted import notes

import jitkernels as jk
from jitkernels.errors import TracingError

X = np.arange(1.0, 6.0)


def of_dtypes(x: Any, limit: Any) -> Any:
    gradient = x * 2 if x.sum() > limit else np.zeros(x.shape, np.float32)
    return gradient + 1


def of_numbers(x: Any, limit: Any) -> Any:
    constant: Any = 0.0
    if x.min() <= limit:
        constant = np.int64(x.min()) * -1 + 1
    return x + constant


def of_shapes(x: Any, limit: Any) -> Any:
    y = x
    if x[0] > limit:
        y = x[1:]
    return y * 2


def of_computed_lengths(x: Any, limit: Any) -> Any:
    count, y = 0, x
    for value in x:
        if value > limit:
            count += 1
    if count > 2:
        y = x[:count]
    return y + 1


def of_objects(x: Any, limit: Any) -> Any:
    result = {"sum": x.sum()}
    if x[0] > limit:
        result = [x.sum(), 1]  # type: ignore[assignment]
    return result


def of_early_returns(x: Any, limit: Any) -> Any:
    if x[0] > limit:
        return x[0], np.ones(4, np.float32)
    gradient = np.zeros(6, np.float32)
    gradient[0] = x[1]
    return x[1], gradient


def of_sides_that_do_not_compile(x: Any, limit: Any) -> Any:
    if x[0] > limit:
        return x * 2
    return np.array(sorted(f"{value}" for value in x))


PROGRAMS = (
    of_dtypes, of_numbers, of_shapes, of_computed_lengths, of_objects, of_early_returns, of_sides_that_do_not_compile,
)  # fmt: skip


def same(result: Any, expected: Any) -> None:
    assert type(result) is type(expected)
    if isinstance(expected, tuple | list):
        for a, b in zip(result, expected, strict=True):
            same(a, b)
    elif isinstance(expected, dict):
        same([*result.items()], [*expected.items()])
    else:
        np.testing.assert_array_equal(result, expected)
        assert getattr(result, "dtype", None) == getattr(expected, "dtype", None)


@pytest.mark.parametrize("limits", [(0.5, 100.0, 0.5), (100.0, 0.5, 100.0)], ids=["first side", "other side"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_either_side(program: Callable[..., Any], limits: Sequence[float]) -> None:
    compiled = jk.jit(program)
    for limit in limits:
        same(compiled(X, limit), program(X, limit))
    if program is not of_sides_that_do_not_compile or limits[0] < 1:
        explanation = compiled.explain(X, limits[0])
        assert not explanation.reason
        assert not explanation.breaks
        assert "code for one side of a branch" in str(explanation)


def test_arguments_are_written_once() -> None:
    """A call that bails out has written nothing."""

    def update(x: Any, out: Any) -> Any:
        out += x
        result = out * 2
        if x[0] <= 0:
            result = out.astype(np.float32)
        out[0] = 7
        return result

    compiled = jk.jit(update)
    for sign in (1, -1, 1):
        ours, numpys = np.ones(5), np.ones(5)
        same(compiled(sign * X, ours), update(sign * X, numpys))
        same(ours, numpys)


def test_calls_that_bail_out_often_are_compared() -> None:
    compiled = jk.jit(of_dtypes)
    compiled(X, 0.5)
    for _ in range(200):
        same(compiled(X, 100.0), of_dtypes(X, 100.0))
        same(compiled(X, 0.5), of_dtypes(X, 0.5))


def test_functions_of_c_run_once() -> None:
    """A condition that depends on one is not known while tracing."""
    calls: list[float] = []

    def count_call(value: float) -> float:
        calls.append(value)
        return value

    counted = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(count_call)

    def choose(x: Any) -> Any:
        y = x
        if counted(x[0]) > 0:
            y = x.astype(np.float32)
        return y

    compiled = jk.jit(choose)
    for count, x in enumerate((X, X, -X), 1):
        same(compiled(x), choose(x))
        assert len(calls) == 2 * count


def test_strict_functions_are_not_for_one_side() -> None:
    with pytest.raises(TracingError, match="on one side of a branch"):
        jk.jit(of_dtypes, strict=True)(X, 0.5)


def test_reproducible_results_do_not_depend_on_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JITKERNELS_POLICY", "reproducible")
    compiled = jk.jit(of_dtypes)
    for limit in (0.5, 1e9):
        np.testing.assert_array_equal(compiled(X, limit), of_dtypes(X, limit))
    assert "one side of a branch" not in str(notes(compiled))


def test_branches_in_loops_have_both_sides() -> None:
    """Which side an iteration takes is not known."""

    def search(x: Any) -> Any:
        y = x
        for value in x:
            if value > 3:
                y = x.astype(np.float32)
        return y

    compiled, x = jk.jit(search), np.arange(40.0)
    same(compiled(x), search(x))
    same(compiled(x * 0), search(x * 0))
    assert compiled.explain(x).reason or compiled.explain(x).breaks


def test_few_branches_are_assumed() -> None:
    """Code for one path of many would bail out of most calls."""

    def search(x: Any) -> Any:
        y = x
        for i in (0, 1, 2, 3, 4, 3, 2, 1):
            if x[i] > 3:
                y = y.astype(np.float32 if i % 2 else np.float64)[:3]
        return y

    compiled = jk.jit(search)
    for x in (X, X - 2, X + 3, X):
        same(compiled(x), search(x))
    assert compiled.explain(X).reason or compiled.explain(X).breaks
