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
@pytest.mark.parametrize("kinds", [*itertools.combinations(REFLECTIONS, 4)])
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


def added(a: Array, i: Array, v: Array) -> Array:
    result = np.zeros_like(a)
    np.add.at(result, i, v)
    np.add.at(result, i[::-1], v)
    return result


def assigned(a: Array, i: Array, v: Array) -> Any:
    result = a * 2
    result[i] = v
    np.add.at(result, i, v)
    return result, result.sum()


def kept(a: Array, i: Array, v: Array) -> Any:
    """The array before the last update is a result, too."""
    result = np.zeros_like(a)
    np.add.at(result, i, v)
    before = result.copy()
    np.add.at(result, i, v)
    return before, result


@pytest.mark.parametrize("function", [added, assigned, kept])
def test_results_of_several_updates(function: Any) -> None:
    rng = np.random.default_rng(1)
    for shape in ((7,), (7, 3)):
        a, i, v = rng.random(shape), rng.integers(0, 7, 20), rng.random((20, *shape[1:]))
        for given in (a, np.asfortranarray(a), np.repeat(a, 2, axis=0)[::2]):
            one, right = (call(given, i, v) for call in (jk.jit(function, strict=True), function))
            for found, expected in zip(*[x if type(x) is tuple else (x,) for x in (one, right)], strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12)
                assert np.asarray(found).strides == np.asarray(expected).strides


def test_updates_are_made_in_the_memory_of_the_result() -> None:
    a, i, v = np.zeros(40), np.arange(20), np.ones(20)
    text = jk.jit(added).loops(a, i, v)
    assert text.count("result[v1] +=") + text.count("result[i[") == 2, text
    assert "] = t" not in text, "an array is copied to the result"
