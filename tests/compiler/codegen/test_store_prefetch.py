"""Prefetch for stores: which outputs get it in functions of several results, and that results are unchanged."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter
from jitkernels.core import cpu_target


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
        pytest.skip("a step writes less than half a line")
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
        pytest.skip("whole lines are written by vectors that are one")
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
