"""Broadcast operands are copied into a buffer once: scalars, rows, and what is combined with them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

ROWS: dict[str, Callable[[int, str], Any]] = {
    "row": lambda n, dtype: np.arange(n).astype(dtype),
    "row with gaps": lambda n, dtype: np.arange(2 * n).astype(dtype)[::2],
    "row backwards": lambda n, dtype: np.arange(n).astype(dtype)[::-1],
    "number": lambda n, dtype: np.array(3, dtype),
    "column": lambda n, dtype: np.arange(37).astype(dtype)[:, np.newaxis],
    "row of rows": lambda n, dtype: np.broadcast_to(np.arange(n).astype(dtype), (37, n)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("n", [1, 3, 500, 512, 513, 700, 2048, 2049])
def test_broadcast_operands(n: int, row: str, dtype: str) -> None:
    x = np.arange(37.0 * n).reshape(37, n)
    y = ROWS[row](n, dtype)
    expected = x * y
    wide = np.zeros((37, 2 * n))[:, ::2]
    wide[...] = x
    for _ in range(4):  # Python, then the dispatcher
        assert np.array_equal(jk.vmul(x, y), expected)
        assert np.array_equal(jk.vmul(y, x), expected)
        assert np.array_equal(jk.vmul(wide, y), expected)
        out = np.zeros((37, 2 * n))[:, ::2]
        jk.vmul(x, y, out=out)
        assert np.array_equal(out, expected)
    both = np.broadcast_to(x[0], (37, n))
    assert np.array_equal(jk.vmul(both, y), both * y)


def test_broadcast_rows() -> None:
    """Kernels of rows take broadcast ones."""
    x = np.random.default_rng(0).uniform(-1, 1, 300)
    many = np.broadcast_to(x, (40, 300))
    for _ in range(4):
        assert np.array_equal(jk.softmax(many), np.broadcast_to(jk.softmax(x[np.newaxis]), (40, 300)))
