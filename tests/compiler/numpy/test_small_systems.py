"""Small linear systems, which are unrolled: the results, exceptions and dtypes of NumPy."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def solved(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def inverted(a: Any) -> Any:
    return np.linalg.inv(a)


def filtered(a: Any, b: Any) -> Any:
    """In a loop."""
    total = np.zeros(a.shape[0])
    for i in range(len(b)):
        if b[i, 0] < 0.7:
            m = a + b[i, 0] * np.eye(a.shape[0])
            total += np.linalg.inv(m) @ b[i] + np.linalg.solve(m, b[i])
    return total


def agree(function: Any, compiled: Any, *given: Any) -> None:
    try:
        expected: Any = function(*given)
    except (np.linalg.LinAlgError, ValueError, TypeError) as error:
        with pytest.raises(type(error), match="^" + str(error)[:20].replace("(", r"\(")):
            compiled(*given)
        return
    found = compiled(*given)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    epsilon = np.finfo(expected.dtype).eps
    bound = 200 * epsilon * np.linalg.cond(given[0].astype(float))
    assert np.abs(found - expected).max(initial=0) <= bound * np.abs(expected).max(initial=0)


def shapes(count: int) -> list[tuple[int, ...]]:
    """Of the right-hand sides; one does not fit."""
    return [(count,), (count, 1), (count, 3), (count + 1,), (count, 0)]


def layouts(a: Any) -> tuple[Any, ...]:
    """Arrays of a matrix's elements in memory of all kinds."""
    return a, a.T, np.repeat(a, 2, axis=1)[:, ::2], a[::-1]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_random_systems(count: int, dtype: str) -> None:
    """Each layout and each shape in turn: there is unrolled code for each."""
    rng = np.random.default_rng(count)
    solve, invert = jk.jit(solved), jk.jit(inverted)
    for turn, shape in enumerate(shapes(count)):
        matrix = layouts((20 * rng.random((count, count)) - 10).astype(dtype))[turn % 4]
        b = (20 * rng.random(shape) - 10).astype(dtype)
        agree(inverted, invert, matrix)
        agree(solved, solve, matrix, b.astype("float32") if turn % 2 else b)


@pytest.mark.full
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_systems_of_all_layouts(count: int, dtype: str) -> None:
    rng = np.random.default_rng(count)
    solve, invert = jk.jit(solved), jk.jit(inverted)
    for _ in range(5):
        for matrix in layouts((20 * rng.random((count, count)) - 10).astype(dtype)):
            agree(inverted, invert, matrix)
            for shape in shapes(count):
                b = (20 * rng.random(shape) - 10).astype(dtype)
                agree(solved, solve, matrix, b)
                agree(solved, solve, matrix, b.astype("float32"))


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0]], [[1, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 1]], [[1e-200, 0], [0, 1e200]],
        [[1, 1], [1, 1 + 1e-15]],
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[0, 1, 0], [0, 0, 1], [1, 0, 0]], [[1e-20, 1], [1, 1]],
        [[0.1, 0.2], [0.3, 0.6]], [[1e-300]], [[-0.0, 1], [1, 1]],
    ],
)  # fmt: skip
def test_special_systems(rows: Any) -> None:
    a = np.array(rows, float)
    agree(inverted, jk.jit(inverted), a)
    agree(solved, jk.jit(solved), a, np.arange(1.0, len(a) + 1))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    for place in ((0, 0), (1, 0), (1, 1)):
        a, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
        a[place] = value
        np.testing.assert_array_equal(jk.jit(solved)(a, b), solved(a, b))
        np.testing.assert_array_equal(jk.jit(inverted)(a), inverted(a))


def test_other_matrices() -> None:
    rng = np.random.default_rng(0)
    for a in (rng.random((3, 2, 2)), rng.random((2, 3)), rng.random(2), np.zeros((0, 0)), rng.random((2, 2)) + 1j):
        for function, given in ((inverted, (a,)), (solved, (a, a))):
            try:
                expected: Any = function(*given)
            except (np.linalg.LinAlgError, ValueError) as error:
                with pytest.raises(type(error)):
                    jk.jit(function)(*given)
                continue
            np.testing.assert_allclose(jk.jit(function)(*given), expected, rtol=1e-10)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_systems_in_loops(count: int) -> None:
    rng, compiled = np.random.default_rng(count), jk.jit(filtered)
    a, b = rng.random((count, count)) + 2 * np.eye(count), rng.random((20, count))
    np.testing.assert_allclose(compiled(a, b), filtered(a, b), rtol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((count, count)), np.zeros((20, count)))
    np.testing.assert_allclose(compiled(a, b[:0]), filtered(a, b[:0]))
    if count <= 5:
        assert "NumPy." not in str(compiled.explain(a, b)).replace("calls of NumPy", "")


def test_derivatives() -> None:
    a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0])
    gradient = jk.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2))(a, b)
    x = np.linalg.solve(a, b)
    np.testing.assert_allclose(gradient, -np.outer(np.linalg.solve(a.T, 2 * x), x), rtol=1e-12)
