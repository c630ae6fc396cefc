"""Ints that inner loops set or change, as indices in outer loops: what is known of them holds in every iteration."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import same

import jitkernels as jk

STARTS = ("-1", "p")
CHANGES = (
    "p = i", "p = j", "p = -j - 1", "p += 1", "p -= 1", "p = p - 1 if p > -n else i", "p = i if p < 0 else p - 1",
    "p = min(p + 1, n - 1)", "p = j if j % 2 else p", "p = len(x) - 1 - i", "p = max(p - 1, -n)",
)  # fmt: skip
CONDITIONS = ("True", "x[i, j % 3] > 1", "p < 0", "i + j < 3 and p > -n + 1")
TEXT = """
def function(x, n):
    p, seen = 0, 0
    for it in range(3):
        p = {start}
        for i in range(n):
            for j in range({inner}):
                if {condition}:
                    {change}
        if p < -n or p >= n:
            p = p % n
        x[p, it % 3] = x[p, 0] - 1
        seen = seen * 7 + p
        q = p
        while q < n - 1:
            {change_q}
            x[q, 1] += 1
            if it > q:
                break
    return seen
"""


def made(start: str, change: str, condition: str, inner: str, folder: Any) -> Callable[..., Any]:
    """The function, from a file, as code needs its source."""
    change_q = "q = q + 1 if q >= 0 else 0"
    text = TEXT.format(start=start, change=change, condition=condition, inner=inner, change_q=change_q)
    file = folder / "program.py"
    file.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    function: Callable[..., Any] = names["function"]
    return function


@pytest.mark.parametrize(("change", "condition"), [*itertools.product(CHANGES, CONDITIONS)])
def test_indices_from_inner_loops(change: str, condition: str, tmp_path: Any) -> None:
    random = np.random.default_rng(0)
    for number, (start, inner) in enumerate(itertools.product(STARTS, ("i", "x.shape[1]"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        plain = made(start, change, condition, inner, folder)
        compiled = jk.jit(plain)
        for n in (4, 2):
            x = random.integers(0, 4, (n, 3)).astype(float)
            mine, theirs = x.copy(), x.copy()
            assert compiled(mine, n) == plain(theirs, n), (start, inner, n)
            same(mine, theirs)


def test_last_hit_of_a_scan_is_reset_in_each_iteration() -> None:
    def emptied(marks: Any, rounds: int) -> Any:
        found = np.zeros((rounds, 2))
        for round_ in range(rounds):
            row, column = -1, -1
            for i in range(marks.shape[0]):
                for j in range(marks.shape[1]):
                    if marks[i, j]:
                        row, column = i, j
            found[round_] = row, column
            marks[row, column] = False
        return found

    for shape in ((3, 4), (3, 1), (1, 4)):
        marks = np.random.default_rng(1).random(shape) < 0.5
        mine, theirs = marks.copy(), marks.copy()
        same(jk.jit(emptied, strict=True)(mine, 9), emptied(theirs, 9))
        same(mine, theirs)
