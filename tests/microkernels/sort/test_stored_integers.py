"""Everyday functions of kernels that store integers: others are cast to the first of these that holds them."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk

HELD = {
    "bool": "int32", "int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "int32": "int32",
    "uint32": "int64", "int64": "int64", "uint64": "uint64", "float16": "float32", "float32": "float32",
    "float64": "float64",
}  # fmt: skip
"""The dtype that the elements of each dtype are sorted in."""


def values(dtype: str, *shape: int) -> Any:
    generator = np.random.default_rng(sum(shape))
    if np.dtype(dtype).kind in "fb":
        return generator.integers(-3, 4, shape).astype(dtype)
    limits: Any = np.iinfo(dtype)
    return generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", HELD)
def test_elements_are_sorted_as_numpy_does(dtype: str) -> None:
    for shape in ((7,), (3, 40), (2, 3, 5), (4, 0), (0, 3)):
        x = values(dtype, *shape)
        for array in (x, x[::-1], x[..., ::2], x.T, np.asfortranarray(x)):
            for axis in range(-array.ndim, array.ndim):
                for _ in range(3):
                    ordered, indices = jk.sort(array, axis=axis), jk.argsort(array, axis=axis)
                    assert ordered.dtype == HELD[dtype]
                    np.testing.assert_array_equal(ordered, np.sort(array, axis))
                    assert indices.dtype == np.int64
                    np.testing.assert_array_equal(indices, np.argsort(array, axis, kind="stable"))


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64"])
def test_results_may_be_given(dtype: str) -> None:
    x = values(dtype, 5, 30)
    right, order = np.sort(x), np.argsort(x, kind="stable")
    for out in (np.empty_like(x), np.empty((5, 60), dtype)[:, ::2], np.empty_like(x, order="F"), np.empty((5, 30))):
        for _ in range(3):
            assert jk.sort(x, out=out) is out
            np.testing.assert_array_equal(out, right.astype(out.dtype))
    for out in (np.empty((5, 30), np.int64), np.empty((30, 5), np.int64).T):
        for _ in range(3):
            assert jk.argsort(x, out=out) is out
            np.testing.assert_array_equal(out, order)
    assert jk.sort(x, out=x) is x
    np.testing.assert_array_equal(x, right)
