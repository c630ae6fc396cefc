"""Arrays that each iteration of a loop writes over whole, and then changes element by element, are not copied back."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

Program = Callable[..., Any]


def of_zeros(x: Any) -> Any:
    count, out = np.zeros(4), np.zeros((len(x), 4))
    for i in range(len(x)):
        count[:] = 0
        for k in range(x.shape[1]):
            count[int(4 * x[i, k])] += 1
        for c in range(4):
            out[i, c] = count[c] / (i + 1)
    return out, count


def of_two_arrays(x: Any) -> Any:
    """Both are filled with the same zeros."""
    count, total, out = np.zeros(4), np.zeros(4), np.zeros((len(x), 4))
    for i in range(len(x)):
        count[:] = 0
        total[:] = 0
        for k in range(x.shape[1]):
            count[int(4 * x[i, k])] += 1
            total[int(4 * x[i, k])] += x[i, k]
        for c in range(4):
            out[i, c] = count[c] - total[c]
    return out, count, total


def of_rows(x: Any) -> Any:
    row, s = np.zeros(x.shape[1]), 0.0
    for i in range(len(x)):
        row[:] = x[i] * 2
        for k in range(1, x.shape[1]):
            row[k] += row[k - 1]
        s += row[-1]
    return row, s


def in_sides(x: Any) -> Any:
    row, s = np.zeros(x.shape[1]), 0.0
    for i in range(len(x)):
        row[:] = x[i]
        if x[i, 0] > 0.5:
            row[0] = 7.0
            for k in range(1, x.shape[1]):
                row[k] += row[k - 1]
        else:
            row[1] = -1.0
        s += row[-1]
    return row, s


def read_before(x: Any) -> Any:
    """What an iteration left is read before the next one writes over it."""
    row, s = np.zeros(x.shape[1]), 0.0
    for i in range(len(x)):
        last = row.sum()
        row[:] = x[i] + last
        for k in range(1, x.shape[1]):
            row[k] += row[k - 1]
        s += row[-1]
    return row, s


def of_itself(x: Any) -> Any:
    row = np.ones(x.shape[1])
    for i in range(len(x)):
        row[:] = row[::-1] * x[i]
        for k in range(1, x.shape[1]):
            row[k] += row[k - 1]
    return row


def of_two_that_swap(x: Any) -> Any:
    old, new = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for i in range(len(x)):
        new[:] = 1.0
        for k in range(x.shape[1]):
            new[k] += old[k] * x[i, k]
        old, new = new, old
    return old


def of_one_value(x: Any) -> Any:
    """The value is read again behind the loop that changes the array."""
    row, s = np.zeros(x.shape[1]), 0.0
    for i in range(len(x)):
        value = x[i] * 3
        row[:] = value
        for k in range(1, x.shape[1]):
            row[k] += row[k - 1]
        s += (row - value).sum()
    return row, s


NOT_COPIED = (of_zeros, of_rows, in_sides)
OTHERS = (of_two_arrays, read_before, of_itself, of_two_that_swap, of_one_value)


@pytest.mark.per_push
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("program", [*NOT_COPIED, *OTHERS])
@pytest.mark.parametrize("level", [1, 3])
def test_values(program: Program, rows: int, level: int) -> None:
    x = np.random.default_rng(rows).random((rows, 6))
    found, expected = (one(x) for one in (jk.jit(program, strict=True, opt_level=level), program))
    for one, other in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def parts(result: Any) -> list[Any]:
    return [*result] if isinstance(result, tuple) else [result]


@pytest.mark.per_push
@pytest.mark.parametrize("program", NOT_COPIED)
def test_no_copy(program: Program) -> None:
    x = np.random.default_rng(0).random((5, 6))
    function = jk.jit(program, strict=True)
    function(x)
    loop = str(function.loops(x)).partition(": loop\n")[2]
    assert loop.count("loop nest") == 1, loop
