"""Sums of products of two arrays become products of matrices: with any order of dimensions, and what NumPy gives."""

import random
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.transforms import contractions
from jitkernels.compiler.transforms.contractions import MIN_MULTIPLICATIONS

SIZES = {"i": 9, "j": 11, "k": 13, "l": 10, "n": 3}


def product_of(first: str, second: str, kept: str) -> Any:
    """The function that `np.einsum` of these subscripts is, as a sum of a broadcast product."""
    every = "".join(dict.fromkeys(kept + first + second))
    axes = tuple(position for position, name in enumerate(every) if name not in kept)

    def spread(array: Any, names: str) -> Any:
        order = [names.index(name) for name in every if name in names]
        shown = array.transpose(order)
        return shown[tuple(slice(None) if name in names else np.newaxis for name in every)]

    def function(x: Any, y: Any) -> Any:
        return np.sum(spread(x, first) * spread(y, second), axis=axes)

    return function


def drawn(names: str, dtype: str, *, is_special: bool = False) -> Any:
    array = np.random.default_rng(len(names)).standard_normal([SIZES[name] for name in names]).astype(dtype)
    if is_special:
        array.flat[5], array.flat[7] = np.inf, np.nan
    return array


def products(compiled: Any) -> int:
    """The matrix products of a function's specializations."""
    made = [one for kept in compiled._specializations.values() for one in kept]
    return sum(node.operation == "matmul" for one in made for node in one.program.graph)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("first", "second", "kept", "count"),
    [
        ("ik", "kj", "ij", 0), ("ijk", "kl", "ijl", 1), ("ijk", "kl", "lij", 1), ("ijk", "kl", "jil", 1),
        ("nkij", "lk", "nlij", 1), ("nkij", "lk", "lnji", 1), ("nijk", "kl", "ilnj", 1), ("ikj", "klj", "il", 1),
        ("ikj", "klj", "ilj", 0), ("ij", "kl", "ik", 0), ("kn", "kij", "nij", 0), ("ijk", "ijk", "i", 0),
    ],
)  # fmt: skip
def test_orders_of_dimensions(first: str, second: str, kept: str, count: int, dtype: str) -> None:
    assert SIZES["i"] * SIZES["k"] * SIZES["j"] < MIN_MULTIPLICATIONS < SIZES["i"] * SIZES["k"] * SIZES["j"] * 10
    function = product_of(first, second, kept)
    compiled = jk.jit(function)
    for is_special in (False, True):
        given = drawn(first, dtype, is_special=is_special), drawn(second, dtype)
        with np.errstate(invalid="ignore"):
            found, expected = compiled(*given), function(*given)
        np.testing.assert_allclose(found, expected, rtol=1e-4 if dtype == "float32" else 1e-11, atol=1e-5)
        assert found.dtype == dtype
    assert products(compiled) == count


def test_integers_stay_loop_nests() -> None:
    function = product_of("ijk", "kl", "ijl")
    x, y = ((drawn(names, "float64") * 9).astype(np.int64) for names in ("ijk", "kl"))
    compiled = jk.jit(function)
    assert np.array_equal(compiled(x, y), function(x, y))
    assert products(compiled) == 0


def test_terms_that_are_used_again_stay() -> None:
    def function(x: Any, y: Any) -> Any:
        terms = x[:, :, :, None] * y
        return terms.sum(axis=2), terms

    x, y = drawn("ijk", "float64"), drawn("kl", "float64")
    compiled = jk.jit(function)
    for one, other in zip(compiled(x, y), function(x, y), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    assert products(compiled) == 0


@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed: int) -> None:
    pick = random.Random(seed)
    channels, filters, k, stride = (
        pick.choice((1, 3, 8)),
        pick.choice((2, 5, 16)),
        pick.choice((1, 3)),
        pick.choice((1, 2)),
    )
    shape = (pick.choice((1, 2)), pick.choice((7, 12)), 10, channels)
    is_last = pick.random() < 0.5
    x = np.random.default_rng(seed).standard_normal(shape if is_last else (shape[0], channels, *shape[1:3]))
    w = np.random.default_rng(seed).standard_normal((k, k, channels, filters))
    rows, columns = (shape[1] - k) // stride + 1, (shape[2] - k) // stride + 1

    def last(x: Any, w: Any) -> Any:
        out = np.empty((x.shape[0], rows, columns, w.shape[3]))
        for i in range(rows):
            for j in range(columns):
                part = x[:, i * stride : i * stride + k, j * stride : j * stride + k]
                out[:, i, j] = np.sum(part[..., np.newaxis] * w, axis=(1, 2, 3))
        return out

    def first(x: Any, w: Any) -> Any:
        out = np.empty((x.shape[0], w.shape[3], rows, columns))
        filters = w.transpose(3, 2, 0, 1)
        for i in range(rows):
            for j in range(columns):
                part = x[:, :, i * stride : i * stride + k, j * stride : j * stride + k]
                out[:, :, i, j] = np.tensordot(part, filters, axes=([1, 2, 3], [1, 2, 3]))
        return out

    function = last if is_last else first
    np.testing.assert_allclose(jk.jit(function)(x, w), function(x, w), rtol=1e-10, atol=1e-12)


def test_larger_calls_make_no_larger_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for small images does not serve images of which the matrix of windows would take much memory."""
    monkeypatch.setattr(contractions, "MAX_MATRIX_ELEMENTS", 1 << 15)

    def convolved(x: Any, w: Any) -> Any:
        k = w.shape[0]
        out = np.empty((x.shape[0] - k + 1, x.shape[1] - k + 1, w.shape[3]))
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = np.sum(x[i : i + k, j : j + k, :, np.newaxis] * w, axis=(0, 1, 2))
        return out

    compiled, random = jk.jit(convolved), np.random.default_rng(0)
    w = random.standard_normal((3, 3, 4, 9))
    for rows, has_product in ((16, True), (20, True), (64, False), (18, True)):
        x = random.standard_normal((rows, rows + 1, 4))
        np.testing.assert_allclose(compiled(x, w), convolved(x, w), rtol=1e-10, atol=1e-12)
        assert ("matmul" in str(compiled.explain(x, w))) == has_product
