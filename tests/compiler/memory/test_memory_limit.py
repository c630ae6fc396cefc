"""The memory limit: order of units and rematerialization, with the same bits."""

import re
from typing import Any

import numpy as np
import pytest
from jitted import array
from random_graphs import Maker

import jitkernels as jk
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.lowering import lower_graph
from jitkernels.compiler.memory.arena import Arena, assign_offsets, bound_of
from jitkernels.compiler.memory.lifetimes import Use, lifetimes
from jitkernels.compiler.memory.memory_aware_order import order_units
from jitkernels.compiler.memory.rematerialization import Rematerializer
from jitkernels.errors import AttrError, MemoryLimitError

WIDE = 1000
"""Words from here on are arguments and results, which lie elsewhere."""


class Memory:
    """What units leave in memory, if each array is where it is planned: what is written over is gone."""

    def __init__(self, arena: Arena | None) -> None:
        begins = arena.offsets(int)[0] if arena else []
        self.places = {
            one.word: (begin, begin + one.traced_bytes)
            for one, begin in zip(arena.buffers if arena else (), begins, strict=True)
        }
        self.values: dict[int, Any] = {}

    def run(self, order: Any, uses: list[Use]) -> dict[int, list[Any]]:
        """What each unit read, each time that it came; and at last what is in the results."""
        read: dict[int, list[Any]] = {}
        for unit in order:
            use = uses[unit]
            found = [self.values.get(word, word if word >= WIDE else None) for word in sorted(use.reads)]
            read.setdefault(unit, []).append(found)
            for word in use.writes:
                low, high = self.places.get(word, (0, 0))
                for other, (begin, end) in self.places.items():
                    if other != word and begin < high and low < end:
                        self.values.pop(other, None)
                self.values[word] = hash((unit, word, tuple(found)))
        read[-1] = [sorted((word, value) for word, value in self.values.items() if word >= WIDE)]
        return read


def some_units(seed: int) -> tuple[list[Use], list[bool], dict[int, Any]]:
    """Units that read what came before, mostly lately; some write over what they read, some to arguments."""
    chosen = np.random.default_rng(seed)
    words = [WIDE, WIDE + 1]
    uses: list[Use] = []
    stays: list[bool] = []
    sizes: dict[int, Any] = {}
    for number in range(int(chosen.integers(2, 22))):
        reads = {
            words[-int(min(chosen.geometric(chosen.choice([0.08, 0.6])), len(words)))]
            for _ in range(int(chosen.integers(1, 4)))
        }
        if chosen.random() < 0.15:
            writes = {sorted(reads)[0]}  # in place, of an argument or not
        else:
            new = [number * 2, number * 2 + 1][: int(chosen.integers(1, 3))]
            writes = {word + WIDE + 10 if chosen.random() < 0.15 else word for word in new}
        words += [word for word in sorted(writes) if word not in words]
        sizes |= {word: 64 * int(chosen.integers(1, 20)) for word in writes if word < WIDE}
        uses.append(Use(frozenset(reads), frozenset(writes), bool(chosen.random() < 0.03)))
        stays.append(uses[-1].lasts or bool(chosen.random() < 0.05))
    return uses, stays, sizes


def some_buffers(order: Any, uses: list[Use], sizes: dict[int, Any]) -> Any:
    class Sized:
        dtype = "int8"

        def __init__(self, size: int) -> None:
            self.shape = (size - 64,)

    return lifetimes(order, uses, {word: Sized(size) for word, size in sizes.items()})  # type: ignore[misc]


@pytest.mark.parametrize("count", [250, pytest.param(1000, marks=pytest.mark.full)])
def test_random_units(count: int) -> None:
    """In any order and with recomputation, each unit reads its own values, and results do not change."""
    within = refused = again = better = 0
    for seed in range(count):
        uses, stays, sizes = some_units(seed)
        plain = range(len(uses))
        expected = Memory(None).run(plain, uses)
        before = some_buffers(plain, uses, sizes)
        order = order_units(uses, stays, before)
        assert sorted(order) == list(plain)
        after = some_buffers(order, uses, sizes)
        assert bound_of(after) <= bound_of(before)
        better += bound_of(after) < bound_of(before)
        chosen = [uses[number] for number in order]
        arena = assign_offsets(after)
        assert _alike(Memory(arena).run(plain, chosen), expected, order), f"seed {seed}"
        limit = int(arena.traced_bytes * np.random.default_rng(seed).uniform(0.5, 1))
        recomputing = Rematerializer(
            chosen, [1] * len(uses), [stays[number] for number in order], frozenset({WIDE, WIDE + 1}), after
        )
        try:
            found, arena = recomputing.within(limit)
        except MemoryLimitError as error:
            refused += int(re.findall(r"([\d,]+) bytes", str(error))[0].replace(",", "")) > limit
            continue
        assert arena.traced_bytes <= limit
        within += 1
        again += len(found) > len(uses)
        assert _alike(Memory(arena).run(found, chosen), expected, order), f"seed {seed}"
    assert (within > 0.05 * count, refused > 0.3 * count, again > 0.03 * count, better > 0.2 * count) == (True,) * 4


def test_definitions_that_nothing_waits_for_come_late() -> None:
    """Unit 0 makes what unit 3 reads alone: two large arrays in between live in its memory."""
    uses = [
        Use(frozenset({WIDE}), frozenset({0}), False),
        Use(frozenset({WIDE}), frozenset({1}), False),
        Use(frozenset({1}), frozenset({WIDE + 1}), False),
        Use(frozenset({0, WIDE + 1}), frozenset({2}), False),
    ]
    order = order_units(uses, [False] * 4, some_buffers(range(4), uses, {0: 256, 1: 1024, 2: 64}))
    assert order.index(0) == order.index(3) - 1


def _alike(found: dict[int, list[Any]], expected: dict[int, list[Any]], order: list[int]) -> bool:
    """Whether each time a unit comes it reads what it read, and results are what they were.

    Values are made of the numbers of units, which are others in another order: what matters is which are the same.
    """
    names: dict[Any, Any] = {}
    for unit, times in found.items():
        (right,) = expected[order[unit] if unit >= 0 else -1]
        for one in times:
            for value, other in zip(one, right, strict=True):
                here, there = (value[1], other[1]) if unit < 0 else (value, other)
                if here is None or names.setdefault(here, there) != there:
                    return False
    return True


def deep(weights: Any, x: Any) -> Any:
    for w in weights:
        x = np.tanh(x @ w)
    return np.mean(x * x)


def layers(n: int, count: int = 8) -> tuple[Any, Any]:
    return [array(n, n, seed=i) / n for i in range(count)], array(4 * n, n, seed=99)


@pytest.mark.parametrize("level", [0, 3])
def test_gradients_within_a_limit(level: int) -> None:
    """With half of the memory, and less: the same bits for all sizes that fit, and an error for others."""
    given = layers(24)
    whole = jk.jit(jk.grad(deep), opt_level=level)
    expected, needed = whole(*given), whole.stats().arena_bytes
    for share in (1.0, 0.6, 0.5):
        limit = int(needed * share)
        compiled = jk.jit(jk.grad(deep), opt_level=level, memory_limit=limit)
        for _ in range(2):
            found = compiled(*given)
            assert all(map(np.array_equal, found, expected))
        stats = compiled.stats()
        assert stats.arena_bytes <= limit
        assert (stats.kernels > whole.stats().kernels) == (share < 1)
        small = layers(9)
        assert all(map(np.array_equal, compiled(*small), whole(*small)))
        assert compiled.stats().compiles == 1
        assert stats.arena_high_water <= limit


def test_larger_sizes_have_a_specialization_that_recomputes() -> None:
    """As far as recomputation saves enough."""
    whole, (weights, x) = jk.jit(jk.grad(deep)), layers(24)
    whole(weights, x)
    limit = whole.stats().arena_bytes
    compiled = jk.jit(jk.grad(deep), memory_limit=limit)
    for rows, compiles in ((96, 1), (50, 1), (150, 2), (110, 2), (96, 2), (300, 2)):
        one = array(rows, 24, seed=rows)
        if rows == 300:
            with pytest.raises(MemoryLimitError, match=rf"need [\d,]+ bytes .* the limit is {limit:,} bytes"):
                compiled(weights, one)
        else:
            assert all(map(np.array_equal, compiled(weights, one), whole(weights, one)))
        assert compiled.stats().compiles == compiles, rows
        assert compiled.stats().arena_high_water <= limit


def test_memory_errors_leave_arguments_unchanged() -> None:
    def step(x: Any, y: Any) -> Any:
        x += 1
        z = y @ y.T
        return z / z.sum(axis=0)

    compiled, x, y = jk.jit(step, memory_limit=1000), array(3), array(70, 30)
    for _ in range(2):
        with pytest.raises(MemoryError):
            compiled(x, y)
    assert np.array_equal(x, array(3))
    found = compiled(x, y[:5])
    assert np.allclose(found.sum(axis=0), 1)


def test_chains_without_fusion() -> None:
    """Recompute a value of many operations that is used again at the end."""

    def chain(x: Any) -> Any:
        a = np.exp(x)
        b = np.sqrt(a + 1)
        c = np.sin(b) * b
        d = np.cos(c) + np.abs(c)
        e = np.tanh(d) / (1 + d * d)
        return e * a + b * c - d

    x = array(5000)
    whole = jk.jit(chain, opt_level=0)
    expected, needed = whole(x), whole.stats().arena_bytes
    compiled = jk.jit(chain, opt_level=0, memory_limit=needed - 1)
    assert np.array_equal(compiled(x), expected)
    assert np.array_equal(compiled(x), expected)
    assert compiled.stats().arena_bytes < needed


def test_random_graphs() -> None:
    """With the tightest plan, all values stay right."""
    tried = 0
    for seed in range(30):
        found = []
        for limit in (None, 0.95):
            maker = Maker(seed)
            graph = maker.graph(14)
            given = [np.ones([_now(n) for n in node.shape], node.dtype) for node in graph.inputs]
            for number, one in enumerate(given):
                one *= np.arange(one.size).reshape(one.shape) % (3 + number) == 1
            needed = lower_graph.compile_graph(graph, maker.scope, JitConfig(opt_level=0)).arena.traced_bytes
            config = JitConfig(opt_level=0, memory_limit=None if limit is None else int(limit * needed))
            try:
                program = lower_graph.compile_graph(graph, maker.scope, config)
            except MemoryLimitError:
                break
            with np.errstate(all="ignore"):
                found.append([one.copy() for one in (*program.run(given, maker.scope.values), *given)])
        if len(found) == 2:
            tried += 1
            assert all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(*found, strict=True))
    assert tried > 2


def _now(extent: Any) -> int:
    return int(getattr(extent, "value", extent))


@pytest.mark.parametrize("limit", [-1, 1.5, True, "1 MB"])
def test_invalid_limits_are_rejected(limit: Any) -> None:
    with pytest.raises(AttrError, match="memory_limit: expected None or an int of at least 0, got"):
        jk.jit(deep, memory_limit=limit)
