"""Products with constant matrices in panels: all edges of tiles and blocks, and constants of compiled functions."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.core import cpu_target
from jitkernels.microkernels.prepacked import panels
from jitkernels.runtime.loading.loader import address_of


def multiplied(x: Any, w: Any, *, is_row: bool = False) -> Any:
    """The product by the kernel itself, or by that for one row."""
    import ctypes

    make = panels.prepacked_row_kernel if is_row else panels.prepacked_kernel
    kernel = make(w.dtype.name, cpu_target.target())
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)(address_of(kernel))
    packed, result = panels.packed_columns(w), np.full((len(x), w.shape[1]), np.nan, w.dtype)
    assert call(x.ctypes.data, packed.ctypes.data, result.ctypes.data, len(x), w.shape[1], w.shape[0]) == 0
    return result


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("inputs", [1, 5, 1030])
@pytest.mark.parametrize("outputs", [1, 33, 64])
def test_edges(inputs: int, outputs: int, dtype: str) -> None:
    """Each number of rows of a tile and some more, parts of panels, several blocks of k."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((inputs, outputs)).astype(dtype)
    for rows in (*range(1, 31), 200):
        x = rng.standard_normal((rows, inputs)).astype(dtype)
        atol = 20 * float(np.finfo(dtype).eps) * inputs
        np.testing.assert_allclose(multiplied(x, w), x @ w, rtol=0, atol=atol, err_msg=str(rows))
    np.testing.assert_allclose(multiplied(x[:1], w, is_row=True), x[:1] @ w, rtol=0, atol=atol)


def test_many_rows_of_large_weights() -> None:
    """Several bands of rows, and weights from memory; a single row of these."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((500, 600)).astype(np.float32), rng.standard_normal((600, 1000)).astype(np.float32)
    for rows, is_row in ((x, False), (x[:1], False), (x[:1], True)):
        np.testing.assert_allclose(multiplied(rows, w, is_row=is_row), rows @ w, rtol=0, atol=1e-3)


def test_panels_hold_the_matrix() -> None:
    w = np.random.default_rng(0).standard_normal((7, 45))
    packed = panels.packed_columns(w)
    np.testing.assert_array_equal(panels.unpacked_columns(packed, 45), w)


WEIGHTS = np.random.default_rng(0).standard_normal((70, 96)).astype(np.float32)


def with_static_weights(x: Any, w: Any) -> Any:
    return np.maximum(x @ w, 0) @ w.T


@pytest.mark.parametrize("shape", [(1, 70), (5, 70), (2, 3, 70), (70,)], ids=str)
def test_static_arguments(shape: tuple[int, ...]) -> None:
    compiled: Any = jk.jit(with_static_weights, static_argnames="w", strict=True)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(compiled(x, WEIGHTS), with_static_weights(x, WEIGHTS), rtol=1e-4, atol=1e-3)
    if len(shape) > 1:
        assert "float32[3, 70, 32]" in str(compiled.explain(x, WEIGHTS)) or panels.panel_width("float32") != 32


def test_gradients_read_the_matrix_itself() -> None:
    def loss(x: Any, w: Any) -> Any:
        return np.sum(np.square(x @ w))

    x = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    gradient: Any = jk.jit(jk.grad(loss), static_argnames="w")
    np.testing.assert_allclose(gradient(x, WEIGHTS), 2 * (x @ WEIGHTS) @ WEIGHTS.T, rtol=1e-3, atol=1e-2)


def split_product(x: Any, w: Any, b: Any) -> tuple[Any, ...]:
    y = x @ w + b
    return y[:, :200], y[:, 200:400], y[:, 400:]


def test_parts_of_a_product_are_not_left_to_numpy() -> None:
    """The weights count for how large a call is: views as results cost as much as NumPy takes for small arrays."""
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 300), (300, 600), (600,)))
    compiled: Any = jk.jit(split_product, static_argnames=("w", "b"), strict=True)
    for _ in range(5):
        found = compiled(x, w, b)
    for one, right in zip(found, split_product(x, w, b), strict=True):
        np.testing.assert_allclose(one, right, rtol=0, atol=1e-3)
    assert compiled.stats().python_entries == 1
