"""Functions traced under a profiler are compiled, and the profiler goes on."""

import cProfile
import pstats
import sys
from typing import Any

import numpy as np
import pytest

import jitkernels as jk


def total(x: Any, count: int) -> Any:
    found = 0.0
    for i in range(count):
        found += helped(x[i])
    return found


def helped(value: Any) -> Any:
    return value * value


def comes_after() -> int:
    return 1


def asks_first(function: Any) -> Any:
    """A frame that the profiler has seen begin before there is code."""
    return function(np.arange(9.0), 9)


def test_profiling_resumes_after_a_first_call() -> None:
    profile, fast, slope = cProfile.Profile(), jk.jit(total), jk.grad(lambda x: total(x, 3))
    profile.enable()
    try:
        assert asks_first(fast) == total(np.arange(9.0), 9)
        np.testing.assert_array_equal(slope(np.arange(4.0)), [0, 2, 4, 0])
        for _ in range(5):
            comes_after()
    finally:
        profile.disable()
    assert "0 calls of NumPy" in str(fast.explain(np.arange(9.0), 9))
    calls = {name: counts[0] for (_, _, name), counts in pstats.Stats(profile).stats.items()}  # type: ignore[attr-defined]
    assert (calls["asks_first"], calls["comes_after"]) == (1, 5)


def test_profilers_see_functions_in_python() -> None:
    seen: list[str] = []

    def hook(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    fast = jk.jit(total)
    sys.setprofile(hook)
    try:
        asks_first(fast)
        comes_after()
        assert sys.getprofile() is hook
    finally:
        sys.setprofile(None)
    assert seen.count("asks_first") == seen.count("comes_after") == 1
    assert "0 calls of NumPy" in str(fast.explain(np.arange(9.0), 9))


def test_profilers_that_cannot_resume_are_not_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    profilers: list[Any] = []
    monkeypatch.setattr(sys, "getprofile", lambda: 7)
    monkeypatch.setattr(sys, "setprofile", profilers.append)
    fast = jk.jit(total)
    assert asks_first(fast) == total(np.arange(9.0), 9)
    assert profilers == []
    monkeypatch.undo()
    assert "falls back to NumPy: the active profiler" in str(fast.explain(np.arange(9.0), 9))
