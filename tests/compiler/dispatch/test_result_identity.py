"""Results are the objects that plain Python gives: what is in one twice, and arrays that are chosen before a loop.

Arrays are so large that no call is served by the plain function.
"""

import dataclasses
import itertools
import linecache
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

SIZE = 60_000
Pair = namedtuple("Pair", "u v")  # noqa: PYI024  # compiled calls make named tuples of this kind


@dataclasses.dataclass
class Held:
    """Two results."""

    u: Any
    v: Any


VALUES = {
    "new": "b = x * 2",
    "argument": "b = x",
    "reversed": "b = x[::-1]",
    "part of new": "b = (x + 3)[1:]",
    "reversed new": "b = (x * 2)[::-1]",
    "shaped": "b = x.reshape(2, -1)",
    "transposed": "b = (x * 2).reshape(2, -1).T",
    "scalar": "b = x.sum()",
    "number": "b = float(x[3])",
}
RESULTS = (
    "b, b", "[b, b]", "b, [b]", "(b, (b, b))", "{'u': b, 'v': b}", "{'u': [b], 'v': {'w': b}}", "b, x, b", "Pair(b, b)",
    "(Pair(b, b), b)", "Held(b, b)", "Held(b, [b])", "(lambda c: (c, c))([b])", "(lambda c: {'u': c, 'v': c})([b])",
    "(lambda c: [c, (c,)])({'w': b})", "(lambda c: (c, [c]))(Held(b, b))", "(lambda c: [c, c])((b,))",
)  # fmt: skip


def made(text: str) -> Callable[..., Any]:
    """The function of a text, which can be read as that of a file can."""
    file = f"<identity {text}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"np": np, "Pair": Pair, "Held": Held}
    exec(compile(text, file, "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


def parts(value: Any) -> Iterator[Any]:
    """A result, and all that is in it."""
    yield value
    if isinstance(value, dict):
        value = list(value.values())
    elif isinstance(value, Held):
        value = [value.u, value.v]
    if isinstance(value, list | tuple):
        for one in value:
            yield from parts(one)


def relations(result: Any, *arguments: Any) -> list[Any]:
    """Types, values, which parts are the same object, and which share memory."""
    found = [*parts(result), *arguments]
    arrays = [one for one in found if isinstance(one, np.ndarray)]
    return [
        [type(one) for one in found],
        [one is other for one, other in itertools.combinations(found, 2)],
        [np.shares_memory(one, other) for one, other in itertools.combinations(arrays, 2)],
        [(one.strides, one.tobytes()) for one in arrays],
    ]


@pytest.mark.parametrize("value", VALUES)
def test_repeated_values_of_a_result_are_one_object(value: str) -> None:
    for result in RESULTS:
        function = made(f"def f(x):\n    {VALUES[value]}\n    return {result}\n")
        compiled = jk.jit(function)
        for _ in range(3):  # the second is served without Python, where that can be
            x = np.arange(float(SIZE))
            assert relations(compiled(x), x) == relations(function(x), x), result


BEGINNINGS = (
    "a, b = x * 2, (y if CONDITION else x * 2)",
    "a, b = (x if CONDITION else y), (y if CONDITION else x)",
    "a, b = (x if CONDITION else x * 3), y",
    "a, b = (x * 2 if CONDITION else x * 3), y",
    "if CONDITION:\n    a, b = x, y\nelse:\n    a, b = y, x * 1.5",
    "b = a = x if CONDITION else y",
)
LOOPS = (
    "for i in range(x.shape[0]):\n    a, b = b, a",
    "for i in range(x.shape[0] - 1):\n    a, b = b, a",
    "for i in range(x.shape[0]):\n    a[i] = b[i] + 1\n    a, b = b, a",
    "for i in range(x.shape[0] - 1):\n    b[:] = a + i\n    a, b = b, a",
    "i = 0\nwhile i < k * 4:\n    a, b = b, a\n    i += 1",
    "for i in range(x.shape[0]):\n    if x[i, 3] > 2:\n        a, b = b, a",
    "for i in range(x.shape[0]):\n    c = a + 1\n    a, b = b, c",
)


@pytest.mark.parametrize("condition", ["k > 0.5", "x.sum() > k * 1e9"])
@pytest.mark.parametrize("loop", LOOPS)
def test_selected_and_then_swapped_arrays(loop: str, condition: str) -> None:
    """Arguments that a branch may select are neither copied nor left unwritten; beginnings have results in turn."""
    turn = LOOPS.index(loop) + ("sum" in condition)
    results = itertools.islice(itertools.cycle(("a, b", "b, a, b", "a[::-1], b")), turn, None)
    for beginning, result in zip(BEGINNINGS, results, strict=False):
        body = f"{beginning.replace('CONDITION', condition)}\n{loop}\nreturn {result}"
        function = made("def f(x, y, k):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
        compiled = jk.jit(function)
        for k in (1.0, 0.0, 1.0):
            given, others = ([np.arange(1.0, 40.0) * np.ones((300, 1)) * f for f in (1, 3)] for _ in range(2))
            found, expected = (f(*g, k) for f, g in ((compiled, given), (function, others)))
            assert relations(found, *given) == relations(expected, *others), f"{body}, for {k}"


LISTS = (
    "return [row for row in x]",
    "return [x[i, 1:] for i in range(len(x))], y * 2",
    "rows = []\nfor row in x:\n    rows.append(row)\nreturn {'rows': rows}",
    "rows = [x[i] for i in range(len(x))]\nreturn rows[2], y + 1",
    "rows = [x[i] for i in range(len(x))]\nreturn rows[-1], np.array(rows)",
    "rows = [x[i] for i in range(len(x))]\nothers = [rows[i] for i in range(len(x))]\nreturn others[1]",
    "states = [x]\nfor i in range(9):\n    states.append(states[-1] * 2)\nreturn states",
    "states = [x]\nfor i in range(9):\n    states.append(states[-1] * 2)\nreturn states[-1], np.array(states)",
    "rows = [x[i] * 2 for i in range(len(x))]\nreturn rows, x",
    "rows = [x[i] for i in range(len(x))]\nreturn sum(row.sum() for row in rows)",
)


@pytest.mark.parametrize("body", LISTS)
def test_lists_of_views_of_arguments(body: str) -> None:
    """Elements of a list that are rows of an argument are views of it."""
    function = made("def f(x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines()))
    compiled = jk.jit(function)
    for rows in (30, 30, 2000):
        given = np.arange(20.0 * rows).reshape(rows, 20), np.ones(9)
        assert relations(compiled(*given), *given)[1:3] == relations(function(*given), *given)[1:3]
