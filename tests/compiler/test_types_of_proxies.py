"""`isinstance` and `type` of what stands for arrays, records and lists while a function is traced."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

RECORD = np.dtype([("x", np.float64), ("k", np.int64)])
X = np.array([1.5, 2.5, 0.5, 4.0])


def selected(x: Any) -> Any:
    return x[x > 1]


def indices(x: Any) -> Any:
    return np.flatnonzero(x > 1)


def expression(x: Any) -> Any:
    return x[x > 1] * 2


def tail(x: Any) -> Any:
    return x[x > 1][1:]


def of_computed_length(x: Any) -> Any:
    return np.zeros(int(x[0]))


def ordered(x: Any) -> Any:
    return np.sort(x[x > 1])


def rows(x: Any) -> Any:
    pairs = x.reshape(-1, 2)
    return pairs[pairs[:, 0] > 1]


def records(x: Any) -> Any:
    return np.zeros(len(x), dtype=RECORD)


def record(x: Any) -> Any:
    return np.zeros(len(x), dtype=RECORD)[1]


def grown(x: Any) -> Any:
    result = []
    for value in x:
        if value > 1:
            result.append(value)  # noqa: PERF401  # the list that grows is what is tested
    return result


MAKERS = (selected, indices, expression, tail, of_computed_length, ordered, rows, records, record, grown)


@pytest.mark.parametrize("make", MAKERS, ids=lambda one: one.__name__)
def test_types(make: Any) -> None:
    def function(x: Any) -> Any:
        value = make(x)
        return (
            isinstance(value, np.ndarray), isinstance(value, list | tuple), isinstance(value, (np.void, float)),
            type(value), type(value) is np.ndarray, hasattr(value, "shape"),
        )  # fmt: skip

    assert jk.jit(function)(X) == function(X)


def test_arguments() -> None:
    def function(r: Any) -> Any:
        return isinstance(r, np.ndarray), type(r), isinstance(r[0], np.void), type(r[0])

    array = np.zeros(3, RECORD)
    assert jk.jit(function, strict=True)(array) == function(array)


def test_a_value_that_may_be_none() -> None:
    def function(x: Any, limit: float) -> Any:
        best = None
        for value in x:
            if value > limit:
                best = value
        return str(type(best)), isinstance(best, np.floating)

    compiled = jk.jit(function)
    for limit in (1.0, 9.0, 1.0):
        assert compiled(X, limit) == function(X, limit)


def test_code_for_any_array_likes() -> None:
    def norm(values: Any) -> Any:
        if not isinstance(values, np.ndarray):
            values = np.asarray(values, dtype=np.float64)
        return np.sqrt((values * values).sum())

    def function(x: Any, limit: float) -> Any:
        return norm(x[x > limit])

    compiled = jk.jit(function, strict=True)
    for limit in (0.0, 2.0, 9.0):
        assert np.isclose(compiled(X, limit), function(X, limit))
