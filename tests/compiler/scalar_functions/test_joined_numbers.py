"""Variables that are a Python number on one path and one of NumPy's floats on another keep their value."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

CASES: list[tuple[str, Any]] = [
    ("float16", 2049), ("float16", 2**31), ("float16", 1e5), ("float16", 1e-30), ("float32", 2**24 + 1),
    ("float32", -(2**24) - 1), ("float32", 2**40 - 1), ("float32", 1e300), ("float32", 1e-300),
    ("complex64", 2**24 + 1),
]  # fmt: skip
EXACT: list[tuple[str, Any]] = [
    ("float16", 2048), ("float16", 0.1), ("float16", np.inf), ("float32", 2**24), ("float32", -5), ("float32", 10**9),
    ("float64", 2**53), ("float64", 1e300), ("float32", 0), ("float32", 0.0),
]  # fmt: skip


def selected(x: Any, other: Any) -> Any:
    return (x[0] or other) * 1


def in_iterations(x: Any, other: Any) -> Any:
    found = np.zeros(len(x), np.complex128)
    for i in range(len(x)):
        value = x[i] if x[i] != 0 else other
        found[i] = value
    return found


def carried(x: Any, other: Any) -> Any:
    best = other
    for value in x:
        if value > 1:
            best = value
    return best


@pytest.mark.per_push(12)
@pytest.mark.parametrize("function", [selected, in_iterations, carried], ids=lambda function: function.__name__)
@pytest.mark.parametrize(("dtype", "number"), [*CASES, *EXACT])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_keep_their_value(dtype: str, number: Any, function: Any) -> None:
    def with_constant(x: Any) -> Any:
        return function(x, number)

    compiled, closed = jk.jit(function), jk.jit(with_constant)
    for x in (np.zeros(3, dtype), np.array([0, 1, 0.5], dtype)):
        for got, expected in [
            (compiled(x, 1), function(x, 1)),
            (compiled(x, number), function(x, number)),
            (closed(x), function(x, number)),
        ]:
            is_near = np.allclose(got, expected, rtol=0.0 if type(number) is int else 1e-3, atol=0.0, equal_nan=True)
            assert is_near, (got, expected)


@pytest.mark.parametrize(("dtype", "number"), EXACT)
def test_exact_numbers_are_compiled(dtype: str, number: Any) -> None:
    def with_constant(x: Any) -> Any:
        return carried(x, number)

    assert with_constant(np.zeros(3, dtype)) == jk.jit(with_constant, strict=True)(np.zeros(3, dtype)) or number == 0.1
