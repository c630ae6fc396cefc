"""Views whose elements overlap in memory, such as sliding windows: assignments to them, and results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import array, same
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import jitkernels as jk


def windows(x: Any) -> Any:
    return sliding_window_view(x, 3, writeable=True)


def strided_windows(x: Any) -> Any:
    return as_strided(x, (len(x) // 2 - 1, 3), (2 * x.strides[0], x.strides[0]))


def blocks(x: Any) -> Any:
    return as_strided(x, (len(x) // 3, 2), (3 * x.strides[0], x.strides[0]))


VIEWS = {"windows": windows, "strided_windows": strided_windows, "blocks": blocks}
"""The elements of the last one do not overlap."""


def numbered(y: Any) -> None:
    y[...] = np.arange(y.size).reshape(y.shape)


def added(y: Any) -> None:
    y += 1


def added_by_out(y: Any) -> None:
    np.add(y, 1, out=y)


def transposed(y: Any) -> None:
    y.T[...] = np.arange(y.size).reshape(y.T.shape)


def reversed_rows(y: Any) -> None:
    y[:] = y[::-1]


def masked(y: Any) -> None:
    y[y > 1] *= -1


def scattered(y: Any) -> None:
    y[1, 0] = 9
    y[[0, 1], [1, 1]] = [7, 8]


def rows_in_a_loop(y: Any) -> None:
    for i in range(len(y)):
        y[i] = y[i].sum()


def elements_in_a_loop(y: Any) -> None:
    for i in range(len(y)):
        for j in range(y.shape[1]):
            y[i, j] += y[i, 0]


def columns(y: Any) -> None:
    y[:, 0] = 5
    y[:, -1] *= 2


WRITES = [
    numbered, added, added_by_out, transposed, reversed_rows, masked, scattered, rows_in_a_loop, elements_in_a_loop,
    columns,
]  # fmt: skip


@pytest.mark.parametrize("write", WRITES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.per_push(30)
def test_writes(kind: str, write: Callable[[Any], None]) -> None:
    view = VIEWS[kind]

    def function(x: Any) -> Any:
        y = view(x)
        write(y)
        return x * 2

    compiled = jk.jit(function, strict=kind == "blocks" and write is not masked)
    for size in (12, 200):
        got, expected = array(size), array(size)
        same(compiled(got), function(expected))
        same(got, expected)


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.per_push
def test_results(kind: str, *, is_new: bool) -> None:
    """Results are views as well: whoever writes an element of one writes all that overlap it."""

    def function(x: Any) -> Any:
        return VIEWS[kind](x + 1 if is_new else x)

    got, expected = jk.jit(function)(array(12)), function(array(12))
    same(got, expected)
    assert got.flags.writeable
    got[0], expected[0] = 5, 5
    got[1] += 1
    expected[1] += 1
    same(got, expected)
