"""Updates of rows and columns that read others of them, one after another, as Householder reflections do."""

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import jitkernels as jk

Array = NDArray[Any]
N = 5
REFLECTIONS = "r1", "c0", "r2", "c1", "r3"
"""Rows or columns, and the first of those that change."""


def _reflected(x: Array, kind: str, v: Array, factor: Array) -> Array:
    """All rows, or columns, from a number on, minus products with all of these: none is left as it was."""
    result, first = np.copy(x), int(kind[1])
    if kind[0] == "r":
        part = x[first:]
        result[first:] = part - factor * v * (v.T @ part)
    else:
        part = x[:, first:]
        result[:, first:] = part - (part @ (factor * v)) * v.T
    return result


@pytest.mark.parametrize("last", [0, 2])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("kinds", itertools.combinations(REFLECTIONS, 4))
def test_no_update_reads_what_it_has_written(kinds: tuple[str, ...], exact: bool, last: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, N, N))
    vectors = tuple((rng.random((N - int(kind[1]), 1)), rng.random((1, 1))) for kind in kinds)

    def function(a: Array, b: Array, vectors: Any) -> Array:
        x = a @ b
        for kind, (v, factor) in zip(kinds, vectors, strict=True):
            x = _reflected(x, kind, v, factor)
        return x[:, last:].copy()

    expected = function(a, b, vectors)
    np.testing.assert_allclose(jk.jit(function, exact_sizes=exact)(a, b, vectors), expected, rtol=1e-9)
