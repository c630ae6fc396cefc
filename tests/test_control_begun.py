"""Inner loops whose variables begin with arrays that others have: these stay what they were."""

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
def test_what_others_have_stays_what_it_was(around: str, rounds: str, tmp_path: Any) -> None:
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
