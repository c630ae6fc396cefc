"""The arena: live buffers never overlap, for any sizes, in as little memory as possible."""

from typing import Any

import numpy as np
import pytest
from jitted import array, same
from processes import python
from random_graphs import Maker

import jitkernels as jk
from jitkernels.benchmarks import rss
from jitkernels.benchmarks.suite import Line, Settings, benchmarks
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.lowering import lower_graph
from jitkernels.compiler.memory.arena import Arena, Buffer, assign_offsets, bound_of
from jitkernels.tuning.timer import Timing


def buffers(seed: int) -> list[Buffer]:
    """Some that come and go as in programs: most soon, some late; each of its own size, which tells it."""
    chosen = np.random.default_rng(seed)
    count = int(chosen.integers(2, 25))
    first = chosen.integers(0, count, count)
    lasts = chosen.geometric(chosen.choice([0.2, 0.5, 0.9]), count)
    sizes = 64 * (1 + chosen.permutation(int(chosen.choice([2, 8, 300])) * count)[:count])
    return [
        Buffer(i, int(size), ((int(begin), int(begin + last - 1)),))
        for i, (size, begin, last) in enumerate(zip(sizes, first, lasts, strict=True))
    ]


def overlaps(arena: Arena, sizes: dict[int, int]) -> list[tuple[Buffer, Buffer]]:
    """Which buffers lie in memory that others have at the same time, for some sizes by those that were planned."""
    begins, total = arena.offsets(lambda nbytes: sizes[nbytes])
    places = [(one, begin, begin + sizes[one.traced_bytes]) for one, begin in zip(arena.buffers, begins, strict=True)]
    assert all(end <= total for _, _, end in places)
    return [
        (one, other)
        for i, (one, begin, end) in enumerate(places)
        for other, low, high in places[:i]
        if one.meets(other) and begin < high and low < end
    ]


def test_live_buffers_never_overlap_for_any_sizes() -> None:
    tight = 0
    for seed in range(1000):
        given = buffers(seed)
        arena = assign_offsets(given)
        assert sorted(one.word for one in arena.buffers) == list(range(len(given)))
        chosen = np.random.default_rng(seed)
        for sizes in (
            {one.traced_bytes: one.traced_bytes for one in given},
            {one.traced_bytes: int(chosen.integers(0, 5000)) for one in given},
            {one.traced_bytes: 1_000_000 - one.traced_bytes for one in given},
        ):
            assert not overlaps(arena, sizes), f"seed {seed}"
        assert bound_of(given) <= arena.traced_bytes <= 1.1 * bound_of(given), f"seed {seed}"
        tight += arena.traced_bytes == bound_of(given)
    assert tight >= 950


def test_overlapping_buffers_are_caught() -> None:
    one, other = Buffer(0, 64, ((0, 3),)), Buffer(1, 128, ((3, 4),))
    assert overlaps(Arena([one, other], [(), ()]), {64: 64, 128: 128})
    assert not overlaps(Arena([one, other], [(), (0,)]), {64: 64, 128: 128})


def test_many_buffers_are_planned_tightly() -> None:
    given = [Buffer(i, 64 * (1 + i % 7), ((i, i + 2 + i % 3),)) for i in range(5000)]
    arena = assign_offsets(given)
    assert bound_of(given) <= arena.traced_bytes <= 2 * bound_of(given)


@pytest.mark.parametrize("level", [0, 3])
def test_arenas_of_random_graphs(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No array is overwritten before its last use: results match NumPy for small arrays and large ones."""
    arenas: list[Arena] = []

    def noted(given: Any) -> Arena:
        arenas.append(assign_offsets(given))
        return arenas[-1]

    monkeypatch.setattr(lower_graph, "assign_offsets", noted)
    for seed in range(60):
        maker = Maker(seed)
        graph = maker.graph(12)
        lower_graph.compile_graph(graph, maker.scope, JitConfig(opt_level=level))
    sizes = [(one.traced_bytes, one.bound) for one in arenas if one.buffers]
    assert len(sizes) > 5
    assert all(now <= 1.1 * bound for now, bound in sizes)
    assert sum(now == bound for now, bound in sizes) >= 0.8 * len(sizes)


def test_memory_figures_are_reported_and_checked() -> None:
    entry = benchmarks()["arena"]
    parts = "lstm", "jacobi", "softmax", "training step"
    lines = list(entry.run(Settings([], "ci", 1e-4, 1, peers=False, parts=parts)))
    assert {line.case for line in lines} == {*parts}
    assert entry.verdict(lines).holds
    for others in ([1.0, 1.0, 1.05, 1.05, 1.0], [1.0] * 8 + [1.2]):
        wrong = [Line("level 3", "a", {}, figures={"x least": ratio}) for ratio in others]
        assert entry.verdict(wrong).holds is False
    step = {name: Timing(seconds, 0.0) for name, seconds in (("jit", 1.0), ("torch", 2.0))}
    for most, holds in ((3.0, True), (0.5, False)):
        figures = {"losses differ": 0.0, "jit MB": 1.0, "torch MB": most}
        line = Line("training", "a", step, "jit", figures=figures)
        assert benchmarks()["training"].verdict([line]).holds is holds


def test_pages_are_counted() -> None:
    if not rss.is_available():
        pytest.skip("the system does not tell")
    code = "import numpy as np; from jitkernels.benchmarks import rss; before = rss.now(); np.ones(1_000_000).sum()"
    assert int(python(f"{code}; print(rss.most() - before)")) > 7_000_000, "in a process of its own"


def chain(a: Any, b: Any) -> Any:
    x = a @ b
    y = np.tanh(x) + x
    z = y.T @ b + y
    w = np.exp(-z) * z
    v = w @ b
    return (v + w) @ b, v.sum()


@pytest.mark.parametrize("level", [0, 3])
def test_stack_and_pooled_memory(level: int) -> None:
    """One code serves arenas on the stack, pooled arenas, and larger ones that are not kept."""
    compiled = jk.jit(chain, opt_level=level)
    for n in (2, 5, 17, 40, 100, 3, 300):
        a, b = array(n, n) / n, array(n, n, seed=2) / n
        for _ in range(3):
            for found, expected in zip(compiled(a, b), chain(a, b), strict=True):
                same(found, expected)
    stats = compiled.stats()
    assert stats.arena_bytes > 0
    assert stats.arena_efficiency > 0.9
    assert "memory between kernels" in str(compiled.explain(a, b))


def replaced(compiled: Any) -> int:
    """How many buffers there are in the last code of a function."""
    (*_, kept) = compiled._specializations.values()
    return len(kept[0].program.arena.buffers)


def test_results_reuse_buffers_of_dead_operands() -> None:
    def one_after_another(a: Any) -> Any:
        b = np.negative(a)
        c = np.sin(b)
        d = c * 2
        return d + 1

    def needed_twice(a: Any) -> Any:
        b = np.negative(a)
        c = np.sin(b)
        return c + b

    def elsewhere(a: Any) -> Any:
        b = np.negative(a)
        c = b[::-1] * 2
        d = c + 1
        return d[::-1] + d

    for function, count in ((one_after_another, 1), (needed_twice, 2), (elsewhere, 2)):
        compiled, a = jk.jit(function, opt_level=0), array(50)
        for _ in range(3):
            same(compiled(a), function(a))
        assert replaced(compiled) == count, function.__name__


def test_buffers_viewed_by_numpy_calls_stay_live() -> None:
    """Kernels read NumPy's views even later; here reshapes, in second derivatives."""

    def product(x: Any, y: Any) -> Any:
        t = y.T.reshape(y.shape)
        return np.sum(x * t * np.exp(t))

    x, y, dx, dy = np.random.default_rng(0).random((4, 3, 4))
    t, d = (one.T.reshape(3, 4) for one in (y, dy))
    along = jk.jvp(jk.grad(product, argnums=(0, 1)), (x, y), (dx, dy))[1][1]
    expected = (dx * np.exp(t) * (1 + t) + x * np.exp(t) * (2 + t) * d).reshape(4, 3).T
    assert np.allclose(along, expected)
