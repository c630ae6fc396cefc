"""Numbers with another dtype on each path of a loop or branch: promoted, with the values of plain Python."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def in_a_branch(x: Any, y: Any, n: int) -> Any:
    value = x[0]
    for i in range(n):
        if i % 3 == 0:
            value = y[i]
        elif i % 3 == 1:
            value = x[i]
    return value


def in_a_loop(x: Any, y: Any, n: int) -> Any:
    value = x[0]
    while n > 0:
        value = y[n]
        n -= 1
    return value, n


@pytest.mark.parametrize(
    ("first", "second", "promoted"),
    [
        ("uint16", "int32", "int32"), ("int8", "int64", "int64"), ("uint8", "int8", "int16"),
        ("uint32", "int32", "int64"), ("float32", "float64", "float64"), ("int32", "float64", "float64"),
        ("float64", "int64", "float64"), ("uint8", "float32", "float32"), ("int32", "float32", "float64"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("function", [in_a_branch, in_a_loop])
def test_numbers_are_promoted(function: Callable[..., Any], first: str, second: str, promoted: str) -> None:
    x, y = np.arange(10).astype(first), np.arange(20, 30).astype(second)
    compiled = jk.jit(function, strict=True)
    for n in (0, 1, 2, 5, 8):
        expected, got = function(x, y, n), compiled(x, y, n)
        np.testing.assert_array_equal(expected, got)
        assert np.asarray(got[0] if type(got) is tuple else got).dtype == promoted


def test_integers_that_no_dtype_holds_are_not_promoted() -> None:
    x, y = np.arange(10).astype(np.uint64), np.arange(10)
    assert jk.jit(in_a_branch)(x, y, 5) == in_a_branch(x, y, 5)


@pytest.mark.parametrize(("dtype", "digits"), [("int64", 53), ("uint32", 24), ("int32", 24), ("uint64", 53)])
@pytest.mark.parametrize("function", [in_a_branch, in_a_loop])
def test_integers_keep_their_values_beside_floats(function: Callable[..., Any], dtype: str, digits: int) -> None:
    """Also those that the float of the other path does not represent."""
    kind = "float32" if digits == 24 else "float64"
    compiled = jk.jit(function)
    for position in (0, 1, 5):
        x, y = np.arange(10).astype(dtype), np.arange(20, 30).astype(kind)
        x[position] = 2**digits + 1
        for first, second in ((x, y), (y, x)):
            for n in (0, 1, 2, 5, 8):
                expected, got = function(first, second, n), compiled(first, second, n)
                np.testing.assert_array_equal(expected, got)


def test_python_floats_beside_integers() -> None:
    def shifted(x: Any) -> Any:
        least = x[0]
        for i in range(len(x)):
            least = min(least, x[i])
        const = 0.0 if least > 0 else least * -1 + 1
        return x + const, const * 0.5

    compiled = jk.jit(shifted, strict=True)
    for first in (3, -4, 0):
        x = np.array([first, 2, 5])
        for got, expected in zip(compiled(x), shifted(x), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("extreme", [min, max])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_extremes_of_numpy_scalars(extreme: Callable[..., Any], dtype: str) -> None:
    """Python's ``min`` and ``max`` of a constant scalar of NumPy and an element."""
    kind = np.dtype(dtype).type

    def clamped(x: Any) -> Any:
        total, bound = x[0] - x[0], kind(4)
        for i in range(len(x)):
            total += extreme(bound, x[i]) - extreme(x[i], bound, x[0])
        return total, extreme(bound, x[3])

    x = np.arange(10).astype(dtype)
    compiled = jk.jit(clamped, strict=True)
    for got, expected in zip(compiled(x), clamped(x), strict=True):
        assert got == expected
        assert got.dtype == expected.dtype
