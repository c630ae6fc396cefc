"""Lists that change in several loops: kinds of numbers, queues, arrays of them, extension by arrays, reversal."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.benchmarks.science.science_program import results_of

X = np.random.default_rng(0).random(40)


def stack_after_search(x: Any) -> Any:
    waiting: list[Any] = [i for i in range(len(x)) if x[i] > 0.5]
    total = 0
    while waiting:
        total += waiting.pop()
        if total % 7 == 3:
            waiting.append(np.int64(1))
    return total


def queue_after_search(x: Any) -> Any:
    waiting = [i for i in range(len(x)) if x[i] > 0.5]
    seen = []
    while waiting:
        first = waiting.pop(0)
        seen.append(first)
        if first % 3 == 0:
            waiting.append(first + 1)
    return np.array(seen), len(seen)


def kinds_of_elements(x: Any) -> Any:
    near = (x * 40).astype(np.int64)
    path = [0]
    while len(path) < 30 and path[-1] < 39:
        path.append(near[path[-1]])
    return np.array(path)


def promoted(x: Any) -> Any:
    small = (x * 40).astype(np.int32)
    path = [0]
    for value in small:
        path.append(value)  # noqa: PERF402  # this is what is tested
    return np.array(path), np.sum(path)


def arrays_of_lists(x: Any) -> Any:
    found, powers = [], [1.0]
    for value in x:
        if value > 0.3:
            found.append(value)
        while powers[-1] < value * 50:
            powers.append(powers[-1] * 2)
    array = np.array(found)
    return array, array.mean(), np.sum(found), np.max(found), np.asarray(powers)[::-1], array * 2, np.array(powers)[1:]


def extended(x: Any) -> Any:
    near = np.minimum((x * 40).astype(np.int64), 38).reshape(-1, 2)
    waiting, total = [0], 0
    while waiting:
        one = waiting.pop()
        total += one
        if total < 3000:
            waiting.extend(near[one // 2])
    return total


def reversed_rows(x: Any) -> Any:
    path = [x[0]]
    for i in range(1, len(x)):
        path.append(x[i] * 2)  # noqa: PERF401  # likewise
    path.reverse()
    return np.array(path), path[0]


def extremes_of_tuples(x: Any) -> Any:
    total = 0.0
    for i in range(1, len(x) - 1):
        total += min((x[i - 1], x[i], x[i + 1])) + max([x[i - 1], 0.5])
    return total


FUNCTIONS = (
    stack_after_search, queue_after_search, kinds_of_elements, promoted, arrays_of_lists, extended, reversed_rows,
    extremes_of_tuples,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_lists(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    for given in (X, X[::-1].copy(), 1 - X):
        expected, got = results_of(function(given.copy())), results_of(compiled(given.copy()))
        assert [one.dtype for one in got] == [one.dtype for one in expected]
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_array_of_an_empty_list_is_one_of_floats() -> None:
    def positive(x: Any) -> Any:
        found = []
        for i in range(len(x)):
            if x[i] > 0:
                found.append(i)  # noqa: PERF401  # likewise
        return np.array(found)

    compiled = jk.jit(positive, strict=True)
    for x in (X, -X, X):
        assert compiled(x).dtype == positive(x).dtype
        assert np.array_equal(compiled(x), positive(x))


def test_views_of_an_array_of_tuples() -> None:
    def path(x: Any) -> Any:
        i, j = x.shape[0] - 1, x.shape[1] - 1
        places = [(i, j)]
        while i > 0 and j > 0:
            if x[i, j] > 0:
                i -= 1
            else:
                j -= 1
            places.append((i, j))
        return np.transpose(np.array(places)[::-1]), np.array(places).T

    compiled = jk.jit(path, strict=True)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((6, 7))
        for got, expected in zip(compiled(x), path(x), strict=True):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
