"""Rows at computed indices outside of loops are views: writes through them reach the array, and writes to it them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import same

import jitkernels as jk

TEXT = """
import numpy as np
def limited(row, most):
    for i in range(len(row)):
        if row[i] > most:
            row[i] = most
    return row
def function(t, x):
    {body}
"""
BODIES = (
    ("r = t[t[x, 0]]", "t[0, 0] = 9", "return r[0] + r.sum()"),
    ("y = t[x][2]", "t[y][1] = 7", "t[x][0] += t[y][1]", "return t[x][1]"),
    ("r, s = t[t[x, 0] - 2], 0", "for j in range(len(r)):", "    r[j] += j", "    s += r[j]", "return s"),
    ("r, q = t[t[x, 0] - 2], t[t[x, 1] - 1]", "r[:] = q", "q[0] = 5", "return r[1]"),
    ("r = t[t[x, 0] - 2]", "if r[0] > 1:", "    r[1] = 3", "    t[x] = 1", "else:", "    r[2:] -= 1", "return r[1]"),
    ("r = t[t[x, 0] - 2]", "if r[0] > 1:", "    r -= 1", "return r[1]"),
    ("r = t[t[x, 0] - 2]", "s = r[1:]", "s[0] += 1", "r += 2", "return s.sum() + t[0, 0]"),
    ("y, z = t[x][0] - 2, t[x][1] - 1", "t[y], t[z] = t[z].copy(), t[y].copy()", "return y"),
    ("r = t[:, t[x, 0] - 1]", "r[:2] = r[1:3]", "for i in range(3):", "    r[i] = r[i] * 2 + t[i, 1]", "return x"),
    ("y = t[x, 0] - 1", "while t[y][0] < 3 and y < 3:", "    t[y][0] += 1", "    y += 1", "t[y][1] = 8", "return y"),
    ("b = t.copy()", "r = b[t[x, 0] - 1]", "r[0] = 7", "return r + b[t[x, 1] - 1]"),
    ("r = t.reshape(2, 2, 4)[t[x, 0] % 2]", "q = r[t[x, 1] % 2]", "q[0] = 9", "r[0, 1] += 3", "return q[0]"),
    ("r = t[t[x, 0] - 1]", "for i in range(3):", "    r = t[i]", "    r[0] += 1", "r[1] = 7", "return r[0]"),
    ("r, q = t[t[x, 0] - 1], t[t[x, 1] - 1]", "for i in range(2):", "    r, q = q, r", "    r[i] += 2", "return r[0]"),
    ("y = t[x, 0] - 1", "limited(t[y], 2)", "q = limited(t[t[y, 1]], 1)", "q[0] = 0", "return q.max()"),
    ("r = t[t[x, 0] - 1]", "r[:] = r[::-1]", "r[1:] = r[:-1]", "r[r > 2] = 0", "np.copyto(r, r * 2)", "return x"),
    ("r, s = t[t[x, 0] - 1], t[t[x, 1] - 1]", "r[0], s[0] = s[0], r[0]", "r[t[x, 2]] = s[t[x, 3]]", "return x"),
    ("r = t[t[x, 0] + 2]", "r[0] = 1", "return x"),
    ("r = t[t[x, 0] + 2]", "return x"),
)  # fmt: skip


def made(body: tuple[str, ...], folder: Any) -> Callable[..., Any]:
    """The function, from a file, as code needs its source."""
    text = TEXT.format(body="\n    ".join(body))
    file = folder / "program.py"
    file.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    function: Callable[..., Any] = names["function"]
    return function


def outcome(function: Any, t: Any, x: int) -> Any:
    try:
        return function(t, x), t
    except IndexError as error:
        return str(error), t


@pytest.mark.per_push(len(BODIES))
@pytest.mark.parametrize("body", BODIES)
def test_rows_are_views(body: tuple[str, ...], tmp_path: Any) -> None:
    plain = made(body, tmp_path)
    compiled = jk.jit(plain, strict=True)
    random = np.random.default_rng(0)
    for number in range(30):
        t = random.integers(0, 4, (8, 8))
        t = t[::2, ::2] if number % 3 == 2 else t[:4, :4].copy()
        x = number % 4
        same(outcome(compiled, t.copy(), x), outcome(plain, t.copy(), x))


def test_returned_rows_are_views() -> None:
    """A computed row as a result stays a view of the argument, where compiled code could only copy it."""

    def chosen(t: Any, x: int) -> Any:
        return t[t[x, 0]]

    t = np.arange(12).reshape(4, 3) % 4
    compiled = jk.jit(chosen)
    for x in (0, 1, 2, 0):
        row = compiled(t, x)
        same(row, chosen(t, x))
        assert np.shares_memory(row, t)


def test_elements_are_written_in_place() -> None:
    """Not to a copy of the array, although the index is read from it."""

    def element(t: Any, x: int) -> None:
        t[t[x, 0], 1] = t[x, 2] + 7

    def row(t: Any, x: int) -> None:
        t[t[x, 0]][1] = 7

    for function in (element, row):
        compiled = jk.jit(function, strict=True)
        for x in (2, 0, 1):
            t = np.random.default_rng(x).integers(-4, 4, (100, 4))
            mine, theirs = t.copy(), t.copy()
            compiled(mine, x)
            function(theirs, x)
            same(mine, theirs)
        assert "writes t:" not in str(compiled.explain(t, 2))
