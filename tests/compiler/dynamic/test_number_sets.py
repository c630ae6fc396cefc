"""``set`` of an array in compiled code: membership tests by binary search, and combinations of sets."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

A, B = np.array([3, 1, 4, 1, 5, 9, 2, 6]), np.array([2, 7, 1, 8, 2, 8])


def among(x: Any, y: Any) -> Any:
    known = set(y)
    result = np.empty(x.shape[0], np.bool_)
    for i in range(x.shape[0]):
        result[i] = x[i] in known
    return result


def combined(x: Any, y: Any) -> Any:
    both, either, first = set(x) & set(y), frozenset(x) | frozenset(y), set(x).difference(y)
    total = 0
    for value in range(-2, 10):
        total = total * 8 + (value in both) + 2 * (value in either) + 4 * (value not in first)
        total %= 99991
    return total


def in_each_iteration(x: Any, y: Any) -> Any:
    total = 0
    for i in range(x.shape[0]):
        known = set(x[: i + 1]).intersection(set(y)).union(y[:1])
        for j in range(y.shape[0]):
            if y[j] not in known:
                total += j
    return total


def of_constants(x: Any, y: Any) -> Any:
    count = 0
    for value in y:
        count += 3 in set(x)
        if 77 in set(y) or value in set(x[:2]):
            count += 10
    return count


PROGRAMS = (among, combined, in_each_iteration, of_constants)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_ints(program: Callable[..., Any], dtype: str) -> None:
    compiled = jk.jit(program)
    for x, y in ((A, B), (B, A), (A[:3], B[:2]), (np.tile(A, 5), np.arange(50) % 11), (A, np.arange(50) % 7)):
        np.testing.assert_array_equal(compiled(x.astype(dtype), y), program(x.astype(dtype), y))
    if program is not in_each_iteration:
        explanation = compiled.explain(A.astype(dtype), B)
        assert not explanation.reason
        assert not explanation.breaks


def test_floats() -> None:
    """NaN is no element of a set, unless it is the same object."""
    compiled = jk.jit(among)
    x, y = np.array([1.0, np.nan, -0.0, np.inf, 3.5]), np.array([np.nan, 0.0, np.inf, 7.0])
    np.testing.assert_array_equal(compiled(x, y), among(x, y))
    np.testing.assert_array_equal(compiled(x, y[:0]), among(x, y[:0]))
    assert not compiled.explain(x, y).breaks


@pytest.mark.parametrize("dtypes", [("int64", "float64"), ("uint64", "int64"), ("float64", "int64")])
def test_numbers_of_other_types(dtypes: tuple[str, str]) -> None:
    """Python compares them exactly, which a common dtype would not."""
    x, y = np.array([1, 2, 2**53 + 1]).astype(dtypes[0]), np.array([2, 2**53]).astype(dtypes[1])
    np.testing.assert_array_equal(jk.jit(among)(x, y), among(x, y))


def ordered(x: Any) -> Any:
    total = 0
    for value in set(x):
        total = total * 10 + value
    return total


def counted(x: Any) -> Any:
    return len(set(x)) + x


def returned(x: Any) -> Any:
    return set(x), x + 1


def compared(x: Any) -> Any:
    return set(x) == {1, 2}, x + 1


@pytest.mark.parametrize("program", [ordered, counted, returned, compared], ids=lambda program: program.__name__)
def test_other_uses_fall_back(program: Callable[..., Any]) -> None:
    compiled, x = jk.jit(program), np.array([2, 1, 2])
    for _ in range(2):
        result, expected = compiled(x), program(x)
        if isinstance(expected, tuple):
            assert result[0] == expected[0]
            result, expected = result[1], expected[1]
        np.testing.assert_array_equal(result, expected)
