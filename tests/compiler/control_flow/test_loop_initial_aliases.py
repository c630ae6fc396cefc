"""Inner loops whose variables start as aliases of other arrays: these stay unchanged."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import same

import jitkernels as jk

STARTS = (
    "x", "x[:]", "x.copy()", "y[1:]", "x.reshape(5)", "b", "b.copy()", "L[0]", "c.copy()", "s", "s.copy()",
    "np.zeros(5)", "(x if k > 1 else b)", "M[j % 3]", "x * 2", "other(x)",
)  # fmt: skip
ROUNDS = {
    "another": ("a = a * 1.01",),
    "swapped": ("a, c = c, a + 0.1",),
    "chosen": ("if k > 1: a = a * 1.01",),
    "written": ("a = a + 1", "a[0] += 1"),
}
AROUND = {"for": "for j in range(20):", "if": "if k > 1:", "while": "while j < 9:"}
TEXT = """
import numpy as np
def other(x):
    return x
def function(x, y, k, n, M):
    t, j = 0.0, 0
    b, s = x * 3, x * 6
    L = [x * 4]
    {around}
        c = x * 2
        a = {start}
        for i in range(n):
            {rounds}
        t += a.sum() + c.sum()
        {more}
    return t, b, L[0], s
"""


def made(around: str, start: str, rounds: tuple[str, ...], folder: Any) -> Callable[..., Any]:
    """The function, from a file, as code needs its source."""
    more = "j += 1" if around == "while" else "pass"
    text = TEXT.format(around=AROUND[around], start=start, rounds="\n            ".join(rounds), more=more)
    file = folder / "program.py"
    file.write_text(text)
    names: dict[str, Any] = {}
    exec(compile(text, str(file), "exec"), names)
    function: Callable[..., Any] = names["function"]
    return function


@pytest.mark.parametrize(("around", "rounds"), [*itertools.product(AROUND, ROUNDS)])
def test_aliased_arrays_stay_unchanged(around: str, rounds: str, tmp_path: Any) -> None:
    random = np.random.default_rng(0)
    given = random.random(5), random.random(6), np.array(2.0), 4, random.random((3, 5))
    for number, start in enumerate(STARTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        function = made(around, start, ROUNDS[rounds], folder)
        compiled = jk.jit(function)
        arguments = [np.array(one) if isinstance(one, np.ndarray) else one for one in given]
        others = [np.array(one) if isinstance(one, np.ndarray) else one for one in given]
        same(compiled(*arguments), function(*others))
        same(arguments, others)


def copied(x: Any, y: Any, k: Any, n: Any) -> Any:
    total = 0.0
    for _ in range(20):
        a = x.copy()
        for i in range(n):
            a[i] += 1
        total += a.sum()
    return total


def copied_before_a_branch(x: Any, y: Any, k: Any, n: Any) -> Any:
    a = y.copy()
    if a[0] > k:
        y -= x
    else:
        a[0] = k
    return a, y


def copied_and_written_on_one_side(x: Any, y: Any, k: Any, n: Any) -> Any:
    a = y.astype(float)
    if x[0] > k:
        y -= x
        a[0] = 7
    return a, y


def copied_in_rounds(x: Any, y: Any, k: Any, n: Any) -> Any:
    total = 0.0
    for j in range(12):
        a, b = y.copy(), x * 1
        if x[j % n] > k:
            a[0] = b[0] = 1
        else:
            y[0] += 1
        total += a.sum() + b.sum()
    return total, y


@pytest.mark.parametrize("function", [copied, copied_before_a_branch, copied_and_written_on_one_side, copied_in_rounds])
def test_copies_are_separate_arrays(function: Callable[..., Any]) -> None:
    compiled, random = jk.jit(function), np.random.default_rng(0)
    for k in (0.1, 0.5, 0.9, 2.0):
        given = [random.random(5), random.random(5), np.array(k), 4]
        others = [np.array(one) if isinstance(one, np.ndarray) else one for one in given]
        same(compiled(*given), function(*others))
        same(given, others)
