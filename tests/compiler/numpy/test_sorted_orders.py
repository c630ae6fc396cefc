"""Sorted arrays lie in memory as NumPy's do: whether `reshape` makes a view of them depends on that."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk


@pytest.mark.per_push
@pytest.mark.parametrize("name", ["sort", "stable", "argsort"])
@pytest.mark.parametrize("axis", [0, 1, -1, 2])
@pytest.mark.parametrize("layout", ["C", "F", "moved", "reversed"])
def test_sorted_arrays_lie_as_numpys(layout: str, axis: int, name: str) -> None:
    def function(x: Any) -> Any:
        y = np.argsort(x, axis, kind="stable") if name == "argsort" else np.sort(x, axis, kind=kind)
        flat = y.reshape(-1)
        flat[0] = 99
        return y, flat

    kind: Any = "stable" if name == "stable" else None
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    x = {"C": x, "F": np.asfortranarray(x), "moved": np.moveaxis(x, 0, 1), "reversed": x[::-1]}[layout]
    for got, expected in zip(jk.jit(function)(x), function(x), strict=True):
        assert np.array_equal(got, expected)
        assert got.strides == expected.strides
