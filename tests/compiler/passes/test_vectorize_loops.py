"""Loops whose iterations are independent become dimensions of nests; all others stay, and all results are NumPy's."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from window_programs import DEPENDENT, INDEPENDENT, Program, filtered, in_steps_of_time, own_row, through_view
from written import function_of

import jitkernels as jk
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Node

FORMS = ("same", "overlapping", "flipped")
SHAPES = ((6, 7), (9, 6), (3, 4), (1, 6))


def pair(shape: tuple[int, int], form: str) -> tuple[Any, Any]:
    drawn = np.random.default_rng(shape[0])
    a, b = drawn.standard_normal(shape), drawn.standard_normal(shape)
    if form == "same":
        return a, a
    if form == "overlapping":
        both = drawn.standard_normal((shape[0] + 1, shape[1]))
        return both[:-1], both[1:]
    return (np.asfortranarray(a), b[:, ::-1]) if form == "flipped" else (a, b)


def outcome(function: Program, shape: tuple[int, int], form: str) -> list[Any]:
    """What a call returns or raises, and leaves in its arguments."""
    a, b = pair(shape, form)
    w = np.random.default_rng(5).standard_normal((3, 3))
    try:
        found = function(a, b, w)
    except (IndexError, ValueError) as error:
        return [type(error), str(error), a, b]
    return [*(found if isinstance(found, tuple) else (found,)), a, b]


def assert_alike(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(other, np.ndarray | float):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)
            assert np.asarray(one).dtype == np.asarray(other).dtype
        else:
            assert one == other


def loops_of(compiled: Any) -> list[Node]:
    """The loops that the specializations of a function still have, without those inside of others."""
    made = [one for kept in compiled._specializations.values() for one in kept]
    return [node for one in made for node in one.program.graph if node.operation == "loop"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [*INDEPENDENT, *DEPENDENT], ids=lambda one: one.__name__)
def test_results(function: Program) -> None:
    compiled = jk.jit(function)
    for shape in SHAPES:
        assert_alike(outcome(compiled, shape, ""), outcome(function, shape, ""))
    for form in FORMS if function in (*DEPENDENT, own_row, through_view, filtered) else FORMS[:1]:
        assert_alike(outcome(compiled, SHAPES[0], form), outcome(function, SHAPES[0], form))


@pytest.mark.parametrize("function", INDEPENDENT, ids=lambda one: one.__name__)
def test_which_loops_are_vectorized(function: Program) -> None:
    compiled = jk.jit(function)
    outcome(compiled, SHAPES[0], "")
    loops = loops_of(compiled)
    assert compiled.stats().kernels
    assert len(loops) == (function is in_steps_of_time)
    assert not any(node.operation == "loop" for loop in loops for node in loop.options["body"])


@pytest.mark.parametrize("function", DEPENDENT[:9], ids=lambda one: one.__name__)
def test_which_loops_stay(function: Program) -> None:
    compiled = jk.jit(function)
    outcome(compiled, SHAPES[0], "")
    assert len(loops_of(compiled)) == 1


@pytest.mark.parametrize("config", [{"opt_level": 0}, {"opt_level": 2}, {"backend": "numba"}], ids=str)
def test_other_configurations(config: Any) -> None:
    for function in (filtered, own_row, through_view):
        compiled = jk.jit(function, config=JitConfig(**config))
        assert_alike(outcome(compiled, SHAPES[0], ""), outcome(function, SHAPES[0], ""))


def test_gradient_of_convolution() -> None:
    def loss(x: Any, w: Any) -> Any:
        out = np.zeros((x.shape[0] - 2, x.shape[1] - 2))
        for i in range(x.shape[0] - 2):
            for j in range(x.shape[1] - 2):
                out[i, j] = np.sum(x[i : i + 3, j : j + 3] * w)
        return np.sum(np.tanh(out))

    x, w = (np.random.default_rng(0).standard_normal(shape) for shape in ((7, 8), (3, 3)))
    dx, dw = jk.grad(loss, argnums=(0, 1))(x, w)
    for array, derivative in ((x, dx), (w, dw)):
        for place in ((0, 0), (1, 2), (2, 1)):
            values = []
            for step in (1e-6, -1e-6):
                array[place] += step
                values.append(loss(x, w))
                array[place] -= step
            assert abs((values[0] - values[1]) / 2e-6 - derivative[place]) < 1e-6


def program(seed: int) -> str:
    """A function that assigns to rows, elements or blocks of an array in loops, with any reads of both arrays."""
    pick = random.Random(seed)
    step = pick.choice((1, 1, 1, 2, -1, -2, 3))
    begin, end = ("1", "n - 3") if step > 0 else ("n - 4", "0")
    place = pick.choice(("i", "i + 1", "i - 1", "n - 1 - i", "2 * i // 2", "i // 2", "1"))
    rows = [pick.choice(("i", "i + 1", "i - 1", "n - 2 - i")) for _ in range(3)]
    column = pick.choice(("j", "j + 1", "m - 1 - j"))
    k = pick.choice((1, 2, 3))
    window = pick.choice((f"a[{rows[0]} : {rows[0]} + {k}, j : j + 2]", f"a[{rows[0]}, j : j + {k}]", f"a[{rows[0]}]"))
    reduced = pick.choice(("np.sum({})", "np.max({})", "np.mean({} * 0.5)", "np.prod({})", "np.sum({} * w[0, 0])"))
    term = reduced.format(window)
    if pick.random() < 0.5:
        term += pick.choice(
            (f" + b[{place}, j]", f" * b[{rows[1]}, j]", " - i", f" + a[{rows[2]}, {column}]", " + j * 2")
        )
    target = pick.choice(("b", "b", "b", "a"))
    body = f"{target}[{place}, {pick.choice(('j', 'j', column))}] {pick.choice(('=', '=', '+='))} {term}"
    lines = [
        "import numpy as np", "", "", "def function(a, b, w):", "    n, m = a.shape",
        f"    for i in range({begin}, {end}, {step}):", f"        for j in range({pick.choice((0, 1))}, m - 3):",
        f"            {body}",
    ]  # fmt: skip
    if pick.random() < 0.4:
        lines.append(f"        {target}[{place}] = {target}[{place}] * 0.5 + np.sum(a[{rows[1]}])")
    return "\n".join([*lines, "    return a, b"]) + "\n"


@pytest.mark.parametrize("start", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(16, 400, 16))])
def test_random_programs(start: int, tmp_path: Path) -> None:
    loops = 0
    for seed in range(start, start + 16):
        function = function_of(program(seed), f"windows_{seed}", tmp_path)
        compiled = jk.jit(function)
        for shape in ((9, 8), (12, 7)):
            assert_alike(outcome(compiled, shape, ""), outcome(function, shape, ""))
        loops += bool(loops_of(compiled))
    assert 2 < loops < 15


def clipped_program(seed: int) -> str:
    """A function that reduces windows which end at the edges of a vector, and numbers in inner loops."""
    pick = random.Random(seed)
    begin = pick.choice(("max(i - r, 0)", "max(0, i - 1)", "i", "max(i - r + 1, 0)", "0"))
    end = pick.choice(("i + r + 1", "min(i + r, n)", "min(n, i + 2)", "i + 1", "n"))
    reduced = pick.choice(
        (
            "{}.sum()", "{}.mean()", "np.max({})", "{}.min()", "({} > 0).any()", "np.all({} > -1)",
            "np.sum(np.square({}))", "len({})", "np.sum(np.abs({}) > 0.5)", "np.sum(np.exp({}))", "np.prod({})",
        )
    ).format(f"x[{begin}:{end}]")  # fmt: skip
    first, last = pick.choice(("max(i - r, 0)", "0", "max(0, i - 2)")), pick.choice(("min(i + r + 1, n)", "r", "n"))
    term = pick.choice(("s += x[k]", "s += x[k] * y[k]", "s -= y[k] * 2", "s = s + x[k] - y[k]", "s = y[k] * x[k] + s"))
    choice = pick.choice(("if x[k] > 1: f = True", "if not x[k] > -1: f = False", "f = f and x[k] > 0"))
    lines = [
        "import numpy as np", "", "", "def function(x, y, r):", "    n = len(x)",
        "    a, b, c = np.zeros(n), np.zeros(n), np.zeros(n, np.bool_)",
        f"    for i in range({pick.choice((0, 0, 1))}, n):", f"        a[i] = {reduced}", "    for i in range(n):",
        f"        s, f = {pick.choice(('0.0', '1.5', 'x[i]'))}, {pick.choice((True, False))}",
        f"        for k in range({first}, {last}):", f"            {term}", "        b[i] = s",
        f"        for k in range({first}, {last}):", f"            {choice}", "        c[i] = f", "    return a, b, c",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", [0, *(pytest.param(i, marks=pytest.mark.full) for i in range(8, 200, 8))])
def test_random_clipped_programs(start: int, tmp_path: Path) -> None:
    for seed in range(start, start + 8):
        function = function_of(clipped_program(seed), f"clipped_{seed}", tmp_path)
        compiled = jk.jit(function)
        for n, r in ((20, 3), (5, 7), (40, 1), (3, 2), (64, 0)):
            x = np.random.default_rng(n).standard_normal(n)
            try:
                expected: Any = function(x, x[::-1].copy(), r)
            except (IndexError, ValueError) as error:
                expected = [repr(error)]
            try:
                found: Any = compiled(x, x[::-1].copy(), r)
            except (IndexError, ValueError) as error:
                found = [repr(error)]
            assert_alike([*found], [*expected])
