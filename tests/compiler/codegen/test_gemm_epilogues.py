"""What follows a matrix product is fused as its epilogue where it needs only its own row."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, notes, same

import jitkernels as jk

Function = Any


def dense(x: Any, w: Any, b: Any) -> Any:
    return np.maximum(x @ w + b, 0) + b


def activated(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w)


def weights(x: Any, w: Any, b: Any) -> Any:
    z = x @ w + b
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sums(x: Any, w: Any, b: Any) -> Any:
    return (x @ w).sum(axis=1) + 1


def both(x: Any, w: Any, b: Any) -> Any:
    z = x @ w
    return z, z * 2 + b, b * 3


def behind_another(x: Any, w: Any, b: Any) -> Any:
    z = x @ w
    return np.cumsum(b) + z.sum(), z - np.exp(b)


def shifted(x: Any, w: Any, b: Any) -> Any:
    return (lambda z: z[1:] - z[:-1])(x @ w)


def reversed_(x: Any, w: Any, b: Any) -> Any:
    return (x @ w)[::-1] + b


def transposed(x: Any, w: Any, b: Any) -> Any:
    return (x @ w).T * 2


def columns(x: Any, w: Any, b: Any) -> Any:
    return (x @ w).max(axis=0) + b


def picked(x: Any, w: Any, b: Any) -> Any:
    return (x @ w)[np.arange(3) - 3] * 2


def whole(x: Any, w: Any, b: Any) -> Any:
    return ((x @ w) ** 2).sum()


def twice(x: Any, w: Any, b: Any) -> Any:
    return np.tanh(x @ w + b) @ w.T - 1


ONE = (dense, activated, weights, sums)
"""Functions that are one kernel."""
OTHERS = (both, behind_another, shifted, reversed_, transposed, columns, picked, whole, twice)
SHAPES = (
    (8, 8, 8), (37, 41, 5), (3, 130, 4), (300, 65, 16), (140, 300, 30), (500, 257, 3), (5, 2100, 9), (3, 4, 700),
)  # fmt: skip


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = jk.get_num_threads()
    jk.set_num_threads(request.param)
    yield request.param
    jk.set_num_threads(before)


def given(rows: int, columns: int, depth: int, dtype: str) -> list[Any]:
    shapes = (rows, depth), (depth, columns), (columns,)
    return [array(*shape, seed=seed).astype(dtype) for seed, shape in enumerate(shapes)]


def pairs(found: Any, right: Any) -> list[tuple[Any, Any]]:
    return [*zip(found, right, strict=True)] if isinstance(right, tuple) else [(found, right)]


@pytest.mark.parametrize("function", [*ONE, *OTHERS])
def test_values(function: Function, threads: int) -> None:
    """All block sizes and larger ones, also by code that was compiled for other sizes."""
    compiled = jk.jit(function)
    for dtype, tolerance in (("float32", 2e-3), ("float64", 1e-9)):
        for shape in (*SHAPES, SHAPES[0]) if dtype == "float64" else SHAPES[:4]:
            arguments = given(*shape, dtype)
            found, right = compiled(*arguments), function(*arguments)
            for one, other in pairs(found, right):
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=str(shape))
    assert not notes(compiled)


@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("shape", [(64, 64, 64), (300, 65, 16), (900, 200, 40)])
def test_product_and_epilogue_are_one_kernel(function: Function, shape: tuple[int, int, int]) -> None:
    explanation = jk.jit(function).explain(*given(*shape, "float32"))
    assert explanation.kernels == 1, explanation
    assert explanation.groups[0].kind == "product"


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (5, 3, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("function", [dense, activated, sums, both])
def test_empty_dimensions(function: Function, shape: tuple[int, int, int], threads: int) -> None:
    """Also by code that was compiled for other sizes."""
    compiled = jk.jit(function)
    for one in ((300, 65, 16), (8, 8, 8), shape):
        found, right = compiled(*given(*one, "float64")), function(*given(*one, "float64"))
    for one, other in pairs(found, right):
        np.testing.assert_allclose(one, other)


def test_operands_are_written_after_their_product(threads: int) -> None:
    """A nest that writes an operand waits for all rows."""

    def step(x: Any, w: Any) -> None:
        x[...] = np.maximum(x @ w, 0)

    def other(x: Any, w: Any) -> None:
        w[...] = np.maximum(x @ w, 0)

    for function in (step, other):
        for size in (8, 200, 400):
            x, w = array(size, size), array(size, size, seed=1)
            mine = x.copy(), w.copy()
            compiled = jk.jit(function)
            for _ in range(2):
                compiled(*mine)
                function(x, w)
                np.testing.assert_allclose(mine[0], x, rtol=1e-9)
                np.testing.assert_allclose(mine[1], w, rtol=1e-9)
                x, w = array(size, size), array(size, size, seed=1)
                mine = x.copy(), w.copy()


def first_factor(x: Any, w: Any, out: Any) -> Any:
    z, y = x @ w, w * 2
    x[...] = y
    out[...] = z
    return y


def second_factor(x: Any, w: Any, out: Any) -> Any:
    z, y = x @ w, x * 2
    w[...] = y
    out[1:] = z[1:]
    return y, z


@pytest.mark.parametrize("function", [first_factor, second_factor])
def test_a_product_is_computed_before_its_factors_are_written(function: Function, threads: int) -> None:
    """Although the consumer of the product comes after the write."""
    compiled = jk.jit(function)
    for size in (200, 8, 300):
        mine = [array(size, size, seed=seed) for seed in range(3)]
        right = [one.copy() for one in mine]
        found, expected = compiled(*mine), function(*right)
        for one, other in (*zip(mine, right, strict=True), *pairs(found, expected)):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_levels_without_fusion_use_several_kernels() -> None:
    arguments = given(60, 50, 40, "float64")
    for level in (0, 1, 2):
        compiled = jk.jit(dense, opt_level=level)
        np.testing.assert_allclose(compiled(*arguments), dense(*arguments), rtol=1e-9)
        assert compiled.explain(*arguments).kernels > 1


def test_products_are_written_to_out(threads: int) -> None:
    arguments = given(600, 200, 20, "float32")
    out = np.empty((600, 200), np.float32)
    compiled = jk.jit(dense)
    for _ in range(3):
        out.fill(7)
        assert compiled(*arguments, out=out) is out
        np.testing.assert_allclose(out, dense(*arguments), rtol=2e-3, atol=2e-3)
    same(compiled(*arguments), out)


def scores(q: Any, k: Any) -> Any:
    s = q @ np.swapaxes(k, -1, -2) * 0.5
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def plus(q: Any, k: Any) -> Any:
    return np.tanh(q @ np.swapaxes(k, -1, -2)) + 1


def across(q: Any, k: Any) -> Any:
    return (q @ np.swapaxes(k, -1, -2)).sum(axis=0)


@pytest.mark.parametrize("function", [scores, plus, across])
def test_batches_of_matrices(function: Function, threads: int) -> None:
    """The rows of each matrix pass to the epilogue whichever thread computes them; operands may be broadcast."""
    compiled = jk.jit(function)
    for outer, other in (
        ((3,), (3,)),
        ((2, 4), (2, 4)),
        ((2, 1), (1, 5)),
        ((), (4,)),
        ((5, 1, 2), (3, 2)),
        ((0,), (0,)),
    ):
        for rows, columns, depth in ((8, 8, 8), (37, 41, 5), (150, 140, 20), (0, 3, 2)):
            q, k = array(*outer, rows, depth), array(*other, columns, depth, seed=2)
            for _ in range(2):
                np.testing.assert_allclose(compiled(q, k), function(q, k), rtol=1e-9, atol=1e-9)
    assert not notes(compiled)
    if function is not across:
        assert compiled.explain(array(2, 4, 50, 16), array(2, 4, 50, 16)).kernels == 1


def changed(x: Any, w: Any) -> Any:
    y = x + 1
    y[0] = 5
    return y @ w


def changed_argument(x: Any, w: Any) -> Any:
    x[0] = 5
    return x @ w


def scaled_behind(x: Any, w: Any) -> Any:
    z = (x * 2) @ w
    x *= 2
    return z


def scaled_before(x: Any, w: Any) -> Any:
    x *= 2
    x[1] = 3
    return x @ w, x.T @ x


def between(x: Any, w: Any) -> Any:
    y = x + 1
    z = y @ w
    y[0] = 5
    return z, y @ w


def filled(x: Any, w: Any) -> Any:
    x[...] = np.tanh(x)
    return (x @ w).sum(axis=1), x.T @ x


@pytest.mark.parametrize("layout", ["C", "F", "reversed", "gaps"])
@pytest.mark.parametrize("function", [changed, changed_argument, scaled_behind, scaled_before, between, filled])
def test_written_factors(function: Function, layout: str) -> None:
    """They are stored in the layout of kernels, whatever the layout of the argument they are written to."""

    def matrix() -> Any:
        x = array(24, 33)
        if layout == "reversed":
            return x[::-1].copy()[::-1]
        if layout == "gaps":
            return np.repeat(x, 2, axis=1)[:, ::2]
        return np.array(x, order=layout)  # type: ignore[call-overload]  # one of NumPy's

    agree(function, matrix, lambda: array(33, 7, seed=2))


def test_fortran_order_arguments_are_not_copied() -> None:
    x, w = array(50, 40), array(40, 30)
    for one in (x, np.asfortranarray(x)):
        for other in (w, np.asfortranarray(w)):
            for function in (lambda x, w: x @ w, lambda x, w: (w.T @ x.T).T):
                compiled = jk.jit(function)
                np.testing.assert_allclose(compiled(one, other), x @ w, rtol=1e-12)
                assert "copy" not in str(compiled.explain(one, other))


def test_factors_returned_in_fortran_order() -> None:
    def both(x: Any, w: Any) -> Any:
        y = (x * 2).copy(order="F")
        return y, y @ w

    for order in ("C", "F"):
        x = np.array(array(24, 33), order=order)
        compiled = agree(both, functools.partial(x.copy, order="K"), lambda: array(33, 7))
        assert compiled(x, array(33, 7))[0].flags.f_contiguous


def test_scalars_are_computed_before_products() -> None:
    """Their common consumer then needs no nest of its own."""

    def scaled(x: Any, w: Any, number: Any) -> Any:
        y = x @ w
        half, factor = 0.5 * y, np.exp(0.9**number)
        return half, half * factor, x * factor

    compiled = jk.jit(scaled)
    given = array(40, 50), array(50, 60), np.float64(3.0)
    assert compiled.explain(*given).kernels == 3
    for found, right in zip(compiled(*given), scaled(*given), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9)
