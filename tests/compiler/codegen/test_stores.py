"""Stores: which outputs are prefetched and which aligned, and that results are unchanged."""

from typing import Any

import numpy as np
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.compiler.codegen.nest.aligned_stores import AlignedStores
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter
from jitkernels.compiler.schedule.nest.store_rules import MIN_PEELED_VECTORS
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel

LINE = 64
LEAST = MIN_PEELED_VECTORS * cpu_target.target().lanes("float32")
AFTER = 16
"""Elements behind an output that must stay as they are."""


def two(a: Any, b: Any) -> Any:
    return a * 2.0 + b, a - b


def two_written(a: Any, b: Any, x: Any, y: Any) -> Any:
    x[...] = a + b
    y[...] = a * b


def one(a: Any, b: Any) -> Any:
    return a * 2.0 + b


def in_place(a: Any, b: Any) -> Any:
    a += 2.0
    b *= 2.0
    return a.sum()


def long(a: Any, b: Any) -> Any:
    return np.exp(np.sin(a)) + np.cos(b), np.log(a) * np.tan(b)


@pytest.fixture
def prefetches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of all emitted prefetches."""
    found: list[str] = []
    prefetch = LoopEmitter.prefetch

    def noted(writer: LoopEmitter, block: Any, at: str, how: str) -> None:
        found.append(how)
        prefetch(writer, block, at, how)

    monkeypatch.setattr(LoopEmitter, "prefetch", noted)
    return found


def _named(name: str) -> cpu_target.Target:
    own = cpu_target.target()
    return type(own)(**{**vars(own), "architecture": "x86_64", "name": name})


@pytest.mark.parametrize("name", ["emeraldrapids", "znver4"])
@pytest.mark.parametrize("function", [two, two_written, one, in_place, long], ids=lambda one: one.__name__)
def test_which_outputs_are_prefetched(
    name: str, function: Any, prefetches: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Write-only outputs among several results are, where storing takes longer than computing."""
    if cpu_target.target().vector_bytes < 32:
        processor_skips.skip("a step writes less than half a line")
    target = _named(name)
    monkeypatch.setattr(cpu_target, "target", lambda: target)
    compiled = jk.jit(function, strict=True)
    for count in (1, 7, 33, 1000, 4097):
        rng = np.random.default_rng(count)
        arrays = [rng.random(count) + 0.5 for _ in range(4 if function is two_written else 2)]
        own = [array.copy() for array in arrays]
        found, expected = compiled(*own), function(*arrays)
        for mine, theirs in zip(own, arrays, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        if expected is not None:
            np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert bool(prefetches) == (name == "emeraldrapids" and function in (two, two_written))
    assert set(prefetches) <= {"i32 1, i32 3"}


def test_streamed_results(prefetches: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Code for large results is that for small ones: cache lines are prefetched in these alone."""
    if cpu_target.target().vector_bytes < 64:
        processor_skips.skip("whole lines are written by vectors that are one")
    target = _named("emeraldrapids")
    monkeypatch.setattr(cpu_target, "target", lambda: target)
    compiled = jk.jit(two_written, strict=True)
    for count in (100, 2_200_011):
        a, b = np.random.default_rng(0).random((2, count))
        around = np.full((2, count + 64), np.nan)
        x, y = around[:, 32:-32]
        compiled(a, b, x, y)
        assert np.array_equal(x, a + b)
        assert np.array_equal(y, a * b)
        assert np.isnan(around[:, :32]).all()
        assert np.isnan(around[:, -32:]).all()
    assert prefetches


def at(elements: int, offset: int) -> Any:
    """An array that begins so many bytes behind the beginning of a line, among elements of -1."""
    memory = np.full(4 * (elements + AFTER) + 2 * LINE, 0, np.uint8)
    begin = -memory.ctypes.data % LINE + offset
    found = memory[begin : begin + 4 * (elements + AFTER)].view(np.float32)
    found[:] = -1
    return found


def product(x: Any, y: Any, z: Any) -> None:
    z[...] = x * y + 1


def sums(x: Any, y: Any, z: Any) -> None:
    z[:1] = x.sum()


def costly(x: Any, y: Any, z: Any) -> None:
    z[...] = np.exp(np.sin(x)) * np.cos(y)


def backwards(x: Any, y: Any, z: Any) -> None:
    z[::-1] = x * y


@pytest.mark.parametrize(
    ("function", "is_aligned"), [(product, True), (sums, False), (costly, False), (backwards, False)]
)
def test_which_nests_align_their_stores(function: Any, is_aligned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that storing limits, where stores follow one another in memory."""
    if cpu_target.target().vector_bytes < LINE // 2:
        processor_skips.skip("a vector is no longer than what arrays are aligned to")
    found: list[Any] = []
    peeled_end = AlignedStores.peeled_end

    def noted(own: AlignedStores, *rest: Any) -> str:
        found.append(own)
        return peeled_end(own, *rest)

    monkeypatch.setattr(AlignedStores, "peeled_end", noted)
    x, y, z = (np.ones(2 * LEAST, np.float32) for _ in range(3))
    jk.jit(function, cache=False)(x, y, z)
    assert bool(found) == is_aligned


@pytest.mark.parametrize("elements", [1, LEAST - 1, LEAST, LEAST + 1, 2 * LEAST + 7])
def test_every_element_is_stored_once(elements: int) -> None:
    """In place, at every offset, with inputs at others: an element computed twice would be added twice."""
    add = jk.jit(lambda total, x: np.add(total, x, out=total))
    for offset in range(0, LINE, 4):
        total, x = at(elements, offset), at(elements, (3 * offset + 16) % LINE)
        total[:elements], x[:elements] = np.arange(elements), 0.5
        add(total[:elements], x[:elements])
        assert np.array_equal(total[:elements], np.arange(elements, dtype=np.float32) + 0.5), offset
        assert (total[elements:] == -1).all(), offset


def test_rows_are_aligned_one_by_one() -> None:
    """Rows of a view begin at different offsets."""
    double = jk.jit(lambda x, out: np.multiply(x, 2, out=out))
    x, out = np.arange(9 * (LEAST + 5), dtype=np.float32).reshape(9, -1), np.full((9, LEAST + 9), -1, np.float32)
    double(x, out[:, 3:-1])
    assert np.array_equal(out[:, 3:-1], 2 * x)
    assert (out[:, :3] == -1).all()
    assert (out[:, -1] == -1).all()


@pytest.mark.parametrize("vector_bytes", cpu_target.target().widths)
def test_streaming_stores_begin_at_a_line(vector_bytes: int) -> None:
    """They trap elsewhere."""
    attr = jk.VMulAttr(n=3 * LEAST, dtype="float32")
    variant = {"unroll": 2 * LINE // vector_bytes, "vector_bytes": vector_bytes, "stream": True, "parallel": False}
    kernel = Kernel(attr, implementation(jk.VMulAttr, "gen"), variant)
    for offset in range(0, LINE, 4):
        x, y, z = (at(attr.n, place)[: attr.n] for place in (16, 32, offset))
        x[:], y[:] = 3, np.arange(attr.n)
        kernel.run(x, y, z)
        assert np.array_equal(z, x * y), offset
