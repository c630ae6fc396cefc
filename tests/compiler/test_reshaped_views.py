"""Reshaped views: where NumPy surely copies, the function compiles, and the result shares no memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def shuffled_channels(x: Any) -> Any:
    n, h, w, c = x.shape
    return x.reshape(n, h, w, 4, c // 4).transpose(0, 1, 2, 4, 3).reshape(n, h, w, c)


def flat_transpose(x: Any) -> Any:
    return x.T.reshape(-1)


def raveled_transpose(x: Any) -> Any:
    return x.T.ravel()


def rows_of_blocks(x: Any) -> Any:
    h, w = x.shape
    return x.reshape(h // 2, 2, w // 2, 2).swapaxes(1, 2).reshape(-1, 4)


def joined_axes(x: Any) -> Any:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def every_second(x: Any) -> Any:
    return x[:, ::2].reshape(-1)


COPIED: dict[Callable[[Any], Any], list[tuple[int, ...]]] = {
    shuffled_channels: [(1, 5, 6, 8), (2, 3, 3, 12), (2, 1, 1, 8)],
    flat_transpose: [(4, 6), (3, 5), (2, 2)],
    raveled_transpose: [(4, 6), (3, 5), (2, 2)],
    rows_of_blocks: [(4, 6), (6, 4)],
    joined_axes: [(4, 6, 2), (3, 5, 1)],
    every_second: [(4, 5), (3, 7)],
}
"""Shapes for which NumPy copies."""
VIEWED: dict[Callable[[Any], Any], list[tuple[int, ...]]] = {
    shuffled_channels: [(1, 5, 6, 4)],
    flat_transpose: [(1, 6), (6, 1), (0, 3)],
    raveled_transpose: [(1, 6), (6, 1), (0, 3)],
    rows_of_blocks: [(2, 2), (8, 2)],
    joined_axes: [(1, 5, 3), (4, 1, 3)],
    every_second: [(4, 6), (1, 6)],
}
"""Shapes for which it makes a view, or both: these may fall back to NumPy."""


def _check(function: Callable[[Any], Any], compiled: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    expected, got = function(x), compiled(x)
    np.testing.assert_array_equal(got, expected)
    assert np.shares_memory(got, x) == np.shares_memory(expected, x)


@pytest.mark.parametrize("function", COPIED, ids=lambda one: one.__name__)
def test_copies_compile(function: Callable[[Any], Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for shape in (*COPIED[function], *COPIED[function]):
        _check(function, compiled, shape)


@pytest.mark.filterwarnings("ignore:.*falls back to NumPy")
@pytest.mark.parametrize("function", COPIED, ids=lambda one: one.__name__)
def test_code_of_copies_does_not_serve_views(function: Callable[[Any], Any]) -> None:
    compiled = jk.jit(function)
    for shape in (*COPIED[function], *VIEWED[function], *COPIED[function]):
        _check(function, compiled, shape)
