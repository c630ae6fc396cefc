"""Matrix products of loop iterations, batched over many iterations, give the results of one by one."""

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.transforms.batch_loop_matmuls import BLOCK_ITERATIONS, MIN_BATCHED_TRIP_COUNT

ROUNDS = (
    MIN_BATCHED_TRIP_COUNT,
    BLOCK_ITERATIONS - 1,
    BLOCK_ITERATIONS,
    BLOCK_ITERATIONS + 1,
    3 * BLOCK_ITERATIONS + 5,
)
Program = Callable[..., Any]


def given(rounds: int, dtype: str = "float64") -> list[Any]:
    """Rows, two matrices of different forms, a bias and a state."""
    drawn = np.random.default_rng(rounds)
    shapes = ((rounds, 90), (24, 90), (90, 24), (24,), (24,))
    return [(drawn.random(shape) - 0.5).astype(dtype) for shape in shapes]


def matrix_first(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for t in range(x.shape[0]):
        h = np.tanh(w @ x[t] + b + 0.5 * h)
    return h


def rows_first(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    found = np.zeros((x.shape[0], h.shape[0]), x.dtype)
    for t, row in enumerate(x):
        h = 0.5 * h + row @ v
        found[t] = h
    return found


def backwards(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for t in range(x.shape[0] - 1, -1, -1):
        h = 0.5 * h + w @ x[t] - np.exp(x[t] @ v)
    return h


def from_the_second_on(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for t in range(1, x.shape[0]):
        h = 0.5 * h + w @ (x[t] - x[t - 1])
    return h


def columns(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    y = x.T * 2
    for t in range(y.shape[1]):
        h = 0.5 * h + w @ y[:, t]
    return h


def again_and_again(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for _ in range(3):
        for t in range(x.shape[0]):
            h = 0.5 * h + w @ x[t]
    return h


def more_and_more(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for i in range(x.shape[0] // 4):
        for t in range(i + 1):
            h = 0.5 * h + w @ x[t]
        h[0] = i
    return h


def swapped(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    other = h * 2
    for t in range(x.shape[0]):
        h, other = other, 0.5 * h + w @ x[t]
    return h, other


def in_place(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for t in range(x.shape[0]):
        h[:] = 0.5 * h + w @ x[t]
        h[3] += t
    return h


def scalars_too(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    best, at = 0.0, -1
    for t in range(x.shape[0]):
        found = np.max(w @ x[t])
        if found > best:
            best, at = float(found), t
    return best, at


AHEAD_OF = (
    matrix_first, rows_first, backwards, from_the_second_on, columns, again_and_again, swapped, in_place, scalars_too,
)  # fmt: skip


def own_of_each_round(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    """What a loop writes to is another matrix in each round."""
    for t in range(x.shape[0]):
        h = 0.5 * h + w @ x[t]
        w[t % 5] += 0.1
    return h


def counted_otherwise(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    k = 0
    for t in range(x.shape[0] - 1):
        h = 0.5 * h + w @ x[k]
        if t % 2:
            k += 1
    return h


def left_early(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
    for t in range(x.shape[0]):
        h = 0.5 * h + w @ x[t]
        if h[0] > 0.3:
            break
    return h


def is_ahead(fast: Any) -> bool:
    """Whether there is a loop of blocks, of which explanations name the number."""
    return re.search(r"sc\d+b=", str(fast.explain(*given(100)))) is not None


def agree(program: Program, arguments: list[Any], found: Any, tolerance: float = 1e-12) -> None:
    expected = program(*[np.copy(one) for one in arguments])
    several = isinstance(expected, tuple)
    for one, other in zip(found if several else [found], expected if several else [expected], strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("program", AHEAD_OF, ids=lambda one: one.__name__)
def test_results_are_those_of_sequential_iterations(program: Program) -> None:
    fast = jk.jit(program)
    for rounds in ROUNDS:
        arguments = given(rounds)
        agree(program, arguments, fast(*[np.copy(one) for one in arguments]))
    assert is_ahead(fast)


@pytest.mark.parametrize(
    "program", [own_of_each_round, counted_otherwise, more_and_more, left_early], ids=lambda one: one.__name__
)
def test_loop_carried_products_are_not_batched(program: Program) -> None:
    fast = jk.jit(program)
    agree(program, given(100), fast(*given(100)))
    assert not is_ahead(fast)


def test_single_precision_and_steps_that_are_an_argument() -> None:
    def steps(x: Any, w: Any, h: Any, many: Any) -> Any:
        for t in range(many):
            h = h * np.float32(0.5) + w @ x[t]
        return h

    fast = jk.jit(steps)
    x, w, _, _, h = given(100, "float32")
    for many in (0, 1, 2, 7, 64, 99):
        assert fast(x, w, h, many).dtype == np.float32
        agree(steps, [x, w, h, many], fast(x, w, h, many), 1e-4)


def test_memory_does_not_grow_with_iterations() -> None:
    fast = jk.jit(matrix_first)
    fast(*given(20_000))
    assert fast.stats().arena_high_water < 2 * BLOCK_ITERATIONS * (24 + 90) * 8


TERMS = ("w @ x[t]", "x[t] @ v", "np.tanh(w @ x[t] + b)", "w @ (x[t] * 2 - b[0])", "(x[t] @ v) * h", "w @ x[n - 1 - t]")


def random_program(seed: int) -> Program:
    """A loop that adds some terms up."""
    drawn = random.Random(seed)
    first, step = drawn.choice([("range(n)", 1), ("range(2, n)", 1), ("range(n - 1, -1, -1)", -1), ("range(n - 3)", 1)])
    terms = " - ".join(drawn.sample(TERMS, drawn.randint(1, 3)))
    lines = [
        "def program(x, w, v, b, h):",
        "    n = x.shape[0]",
        f"    for t in {first}:",
        f"        h = {drawn.choice(('0.3 * h', 'np.sin(h)'))} + 0.1 * ({terms})",
        *(["        h[t % 7] *= 0.5"] if drawn.random() < 0.5 else []),
        "    return h",
    ]
    return written("\n".join(lines), f"random_{seed}_{step}")


def written(text: str, name: str) -> Program:
    """A function of a text, which `inspect` finds."""
    import linecache

    file = f"<{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"np": np}
    exec(compile(text, file, "exec"), names)
    found: Program = names["program"]
    return found


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed: int) -> None:
    program = random_program(seed)
    arguments = given(70 + seed)
    for level in (0, 3):
        fast = jk.jit(program, config=JitConfig(opt_level=level))
        agree(program, arguments, fast(*[np.copy(one) for one in arguments]))


@pytest.mark.parametrize("program", [matrix_first, backwards], ids=lambda one: one.__name__)
def test_derivatives_of_batched_products(program: Program) -> None:
    def loss(x: Any, w: Any, v: Any, b: Any, h: Any) -> Any:
        return np.sum(program(x, w, v, b, h) ** 2)

    arguments = given(70)
    found, plain = (
        jk.jit(jk.grad(loss, argnums=(0, 1, 2, 3, 4)), config=JitConfig(opt_level=level))(*arguments)
        for level in (3, 0)
    )
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def at(array: Any, offset: int) -> Any:
    """The same numbers so many bytes behind the begin of a line of the cache."""
    memory = np.zeros(array.nbytes + 128, np.uint8)
    first = -memory.ctypes.data % 64 + offset
    found = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def test_unaligned_matrices() -> None:
    def power(w: Any, v: Any, h: Any) -> Any:
        for _ in range(40):
            h = (w @ h) * 0.1 - h @ v
        return h

    w, v, h = (np.random.default_rng(0).random(shape) - 0.5 for shape in ((24, 24), (24, 24), 24))
    fast = jk.jit(power)
    for offset in (0, 8, 16, 40):
        agree(power, [w, v, h], fast(at(w, offset), at(v, offset), h), 1e-9)
    assert "w: float64" in str(fast.explain(w, v, h)).split(" loop:")[0]
