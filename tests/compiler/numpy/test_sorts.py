"""`numpy.sort`, `argsort` and `lexsort` in compiled functions: kernels for all dtypes and layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

REAL = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
DTYPES = pytest.mark.parametrize("dtype", REAL)
SHAPES = ((0,), (33,), (3, 0), (4, 40), (2, 3, 20))


def values(dtype: str, *shape: int, few: bool = False) -> Any:
    """Elements of the whole range, or few that occur often."""
    generator, kind = np.random.default_rng(sum(shape)), np.dtype(dtype).kind
    if few or kind == "b":
        return generator.integers(0, 4, shape).astype(dtype)
    if kind == "f":
        special = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0], dtype)
        numbers = generator.standard_normal(shape).astype(dtype)
        return np.where(generator.random(shape) < 0.2, generator.choice(special, shape), numbers)
    limits: Any = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def agree(function: Callable[..., Any], *arguments: Any, calls: int = 0) -> None:
    """Compare with NumPy, first and later calls, and count the calls of NumPy."""
    compiled, right = jk.jit(function), function(*arguments)
    for _ in range(2):
        got = compiled(*arguments)
        for one, other in zip(got, right, strict=True) if isinstance(right, tuple) else [(got, right)]:
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    assert f" {calls} calls of NumPy" in str(compiled.explain(*arguments))


@DTYPES
def test_arrays_of_all_layouts(dtype: str) -> None:
    for shape in SHAPES:
        x = values(dtype, *shape, few=len(shape) == 2)
        for number, array in enumerate((x, x[::-1], x[..., ::2], x.T)):
            for axis in [None, *range(-array.ndim, array.ndim)][number % 2 :: 2]:
                agree(
                    lambda x: (np.sort(x, axis=axis), np.argsort(x, axis=axis, kind="stable")),  # noqa: B023  # at once
                    array,
                    calls=0,
                )


@DTYPES
def test_kinds(dtype: str) -> None:
    """All kinds of an integer sort give the same. Where kinds of argsort may give any order, it is the stable one."""
    x, distinct = values(dtype, 200, few=True), np.random.default_rng(1).permutation(100).astype(dtype)
    stable = np.argsort(x, kind="stable")
    for kind in (None, "quicksort", "heapsort", "mergesort", "stable"):
        agree(lambda x: np.sort(x, kind=kind), x)  # noqa: B023  # at once
        np.testing.assert_array_equal(jk.jit(lambda x: np.argsort(x, kind=kind))(x), stable)  # noqa: B023
    if dtype != "bool":
        agree(lambda x: (np.argsort(x), x.argsort()), distinct)
    agree(lambda x: (np.sort(x, stable=True), np.argsort(x, stable=True)), x)


def test_stable_sorts_keep_the_order_of_zeros() -> None:
    """And all NaN as they are."""
    x = np.where(np.random.default_rng(0).random((3, 50)) < 0.5, -0.0, 0.0)
    x[:, :3] = 1.0, -1.0, np.nan
    for axis in (0, 1):
        got = jk.jit(lambda x: np.sort(x, axis=axis, kind="stable"))(x)  # noqa: B023  # at once
        assert got.tobytes() == np.sort(x, axis=axis, kind="stable").tobytes()


@DTYPES
def test_arrays_are_sorted_in_place(dtype: str) -> None:
    def sorted_rows(x: Any) -> Any:
        x = x.copy()
        x.sort()
        x[:, ::-1].sort(axis=0)
        return x

    agree(sorted_rows, values(dtype, 20, 30))


@DTYPES
def test_lexsort(dtype: str) -> None:
    """The last key is the first to decide; equal elements keep their order."""
    for n in (0, 1, 2, 50, 700):
        x, few, floats = values(dtype, n), values(dtype, n, few=True), np.round(np.sin(np.arange(n)), 1)
        agree(lambda *keys: np.lexsort(keys), x, few)
        agree(lambda *keys: np.lexsort(list(keys)), few, floats, few[::-1])
        agree(lambda key: np.lexsort((key,)), few)
    agree(lambda x: np.lexsort(x), values(dtype, 3, 40, few=True))


def test_keys_that_are_left_to_numpy() -> None:
    x = values("int64", 3, 4, 5)
    functions: list[Any] = [lambda x: np.lexsort((x, x)), lambda x: np.lexsort((x[0], x[1]), axis=0)]
    for function in functions:
        np.testing.assert_array_equal(jk.jit(function)(x), function(x))
    of_two: Any = jk.jit(lambda x, y: np.lexsort((x, y)))
    with pytest.raises(ValueError, match="same shape"):
        of_two(np.arange(3), np.arange(4))


@DTYPES
def test_unique(dtype: str) -> None:
    for x in (values(dtype, 100, few=True), values(dtype, 1), values(dtype, 60)):
        if not (np.dtype(dtype).kind == "f" and np.signbit(x[x == 0]).any()):
            agree(
                lambda x: (np.unique(x), *np.unique(x, return_index=True, return_inverse=True, return_counts=True)), x
            )


def test_indices_of_a_sort_need_no_bounds_check() -> None:
    """Elements in sorted order are read in one loop nest, behind no other."""
    function = jk.jit(lambda x, y: y[np.argsort(x)])
    x, y = values("int64", 100), values("float64", 100)
    text = str(function.explain(x, y))
    assert "2 kernels, 0 calls of NumPy" in text
    assert "any" not in text


def test_sorts_in_loops() -> None:
    def ranks(x: Any) -> Any:
        result = np.empty_like(x)
        for k in range(x.shape[1]):
            result[np.argsort(x[:, k], kind="stable"), k] = np.arange(len(x))
        return result

    def sums(x: Any) -> Any:
        total = 0
        for i in range(len(x)):
            total += np.sort(x[: i + 1, 0])[i // 2] + np.argsort(x[i:, 1], kind="stable")[0]
        return total

    for dtype in ("int64", "float64", "uint8"):
        x = values(dtype, 20, 3, few=True)
        for function in (ranks, sums):
            np.testing.assert_array_equal(jk.jit(function)(x), function(x))
