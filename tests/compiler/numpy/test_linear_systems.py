"""Small linear systems, unrolled and in loops, one and in stacks: the results, exceptions and dtypes of NumPy."""

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
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 11])
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
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 9, 33])
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
            np.testing.assert_allclose(jk.jit(function)(*given), expected, rtol=1e-10, atol=1e-13)


STACKS: list[tuple[int, ...]] = [(), (4,), (2, 3), (0,), (3, 0)]


def factored(a: Any) -> Any:
    return np.linalg.cholesky(a)


def determinants(a: Any) -> Any:
    return np.linalg.det(a), *np.linalg.slogdet(a)


def check_stack(function: Any, *given: Any) -> None:
    """No call of NumPy serves a stack of regular matrices."""
    compiled = jk.jit(function, strict=True)
    found, expected = compiled(*given), function(*given)
    for result, right in zip(*(one if isinstance(one, tuple) else (one,) for one in (found, expected)), strict=True):
        assert (np.shape(result), np.asarray(result).dtype) == (np.shape(right), np.asarray(right).dtype)
        epsilon = float(np.finfo(right.dtype).eps)
        np.testing.assert_allclose(result, right, rtol=3e4 * epsilon, atol=3e4 * epsilon)
    assert ", 0 calls of NumPy" in str(compiled.explain(*given))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [1, 2, 5, 6, 13, 32])
@pytest.mark.parametrize("stack", STACKS, ids=str)
def test_stacks(stack: tuple[int, ...], count: int, dtype: str) -> None:
    rng = np.random.default_rng([count, *stack])
    a = (rng.random((*stack, count, count)) + count * np.eye(count)).astype(dtype)
    for shape in ((count,), (count, 3), (*stack, count, 2), (2, *(1 for _ in stack), count, 1)):
        check_stack(solved, a, rng.random(shape).astype(dtype))
    check_stack(inverted, a)
    check_stack(determinants, a / a.dtype.type(count))
    check_stack(factored, a + np.swapaxes(a, -1, -2) + np.triu(rng.random(a.shape), 1).astype(dtype))


@pytest.mark.parametrize("count", [2, 4, 7, 12])
def test_one_singular_matrix_of_a_stack(count: int) -> None:
    """NumPy raises for it, or says that its determinant is zero."""
    rng = np.random.default_rng(count)
    a = rng.random((3, count, count)) + np.eye(count)
    a[1, -1] = a[1, 0]
    a[2, :, 1] = 0
    for one in (a, a[1], a[2], a[1] * np.nan):
        for function in (inverted, factored):
            try:
                expected: Any = function(one)
            except np.linalg.LinAlgError as error:
                with pytest.raises(np.linalg.LinAlgError, match=f"^{error}"):
                    jk.jit(function)(one)
            else:
                np.testing.assert_allclose(jk.jit(function)(one), expected, rtol=1e-6)
    for found, right in zip(jk.jit(determinants)(a), determinants(a), strict=True):
        np.testing.assert_allclose(found[[0, 2]], right[[0, 2]], rtol=1e-10, atol=1e-13)
        assert found[1] == pytest.approx(right[1], abs=1e-13) or found[1] < -25


@pytest.mark.parametrize("count", [2, 5, 6, 20])
@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_determinants_of_all_sizes(scale: float, count: int) -> None:
    """Products that overflow or underflow on the way are NumPy's sums of logarithms."""
    rng = np.random.default_rng(count)
    a = rng.random((count, count)) + np.eye(count)
    scales = scale ** np.where(np.arange(count) % 2, 1.0, -1.0 if scale > 1 else 0.5)
    with np.errstate(all="ignore"):
        for found, right in zip(jk.jit(determinants)(a * scales), determinants(a * scales), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9)


@pytest.mark.parametrize("count", [6, 10, 40])
def test_pivots(count: int) -> None:
    """Matrices whose leading elements are zero or tiny."""
    rng = np.random.default_rng(count)
    a = rng.standard_normal((count, count))
    a[np.arange(count), np.arange(count)] = 0
    check_stack(inverted, a)
    check_stack(solved, a + 1e-14 * np.eye(count), rng.random(count))
    check_stack(determinants, a[::-1].copy())
    check_stack(solved, np.eye(count)[rng.permutation(count)], rng.random((count, 2)))


def test_large_matrices() -> None:
    rng = np.random.default_rng(0)
    for count in (64, 65, 90):
        a = rng.random((count, count)) + np.eye(count)
        agree(solved, jk.jit(solved), a, rng.random(count))
        np.testing.assert_allclose(jk.jit(factored)(a @ a.T), factored(a @ a.T), rtol=1e-8)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7])
def test_systems_in_loops(count: int) -> None:
    rng, compiled = np.random.default_rng(count), jk.jit(filtered)
    a, b = rng.random((count, count)) + 2 * np.eye(count), rng.random((20, count))
    np.testing.assert_allclose(compiled(a, b), filtered(a, b), rtol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        compiled(np.zeros((count, count)), np.zeros((20, count)))
    np.testing.assert_allclose(compiled(a, b[:0]), filtered(a, b[:0]))
    assert "NumPy." not in str(compiled.explain(a, b)).replace("calls of NumPy", "")


def test_derivatives() -> None:
    a, b = np.array([[3.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0])
    gradient = jk.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2))(a, b)
    x = np.linalg.solve(a, b)
    np.testing.assert_allclose(gradient, -np.outer(np.linalg.solve(a.T, 2 * x), x), rtol=1e-12)
