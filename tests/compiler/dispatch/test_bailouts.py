"""Bailouts at run time: the plain function serves the call at once, from its initial state."""

import sys
import warnings
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.api.jit import JitFunction
from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.runtime.inline_cache import MANY_BAILOUTS


def doubled(x: Any, rounds: int) -> Any:
    y = x
    for _ in range(rounds):
        y = y * 2
    return y


def picked(x: Any, i: int, *, scale: float = 2.0) -> Any:
    total = 0.0
    for k in range(3):
        total += x[i + k] * scale
    return total


def logs(x: Any, rounds: int) -> Any:
    y = x
    for _ in range(rounds):
        y = np.log(y)
    return y if rounds else (y, np.log(x))[0]


def caught(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        function(*args, **kwargs)
    except IndexError as error:
        return str(error)
    return ""


def looked_for(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = JitFunction.look_up

    def noted(self: Any, args: Any, kwargs: Any) -> Any:
        calls.append(args)
        return look_up(self, args, kwargs)

    monkeypatch.setattr(JitFunction, "look_up", noted)


@pytest.mark.skipif(dispatch_chain.base is None, reason="calls go by Python here")
def test_bailouts_do_not_look_up_code(monkeypatch: pytest.MonkeyPatch) -> None:
    x, calls = np.arange(5.0), []  # type: np.ndarray[Any, Any], list[Any]
    fast, chosen = jk.jit(doubled), jk.jit(picked)
    for _ in range(3):
        for rounds in (3, 0):
            fast(x, rounds)
        for i in (1, 3):
            caught(chosen, x, i), caught(chosen, x, i, scale=3.0)
    looked_for(calls, monkeypatch)
    before = sys.getrefcount(x)
    assert all(fast(x, 0) is x for _ in range(MANY_BAILOUTS - 10))
    assert sys.getrefcount(x) == before
    for scale in ({}, {"scale": 3.0}):
        assert caught(chosen, x, 3, **scale) == "index 5 is out of bounds for axis 0 with size 5"
    assert calls == []
    np.testing.assert_array_equal(fast(x, 2), 4 * x)


@pytest.mark.skipif(dispatch_chain.base is None, reason="calls go by Python here")
def test_bailouts_of_overlapping_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    def moved(x: Any, y: Any) -> Any:
        x[...] = y * 2
        return x.sum()

    fast, calls = jk.jit(moved), []  # type: Any, list[Any]
    for _ in range(3):
        fast(np.ones(8), np.ones(8))
    looked_for(calls, monkeypatch)
    for begin in range(4):
        ours, theirs = np.arange(12.0), np.arange(12.0)
        assert fast(ours[begin : begin + 8], ours[2:10]) == moved(theirs[begin : begin + 8], theirs[2:10])
        np.testing.assert_array_equal(ours, theirs)
    assert calls == []


def test_results_are_written_to_out() -> None:
    x, out = np.arange(5.0), np.empty(5)
    fast = jk.jit(doubled)
    for rounds in (3, 0, 3, 0):
        assert fast(x, rounds, out=out) is out
        np.testing.assert_array_equal(out, doubled(x, rounds))
        assert fast(x, 0, out=None) is x


def test_methods_and_parts_of_functions() -> None:
    class Scaled:
        factor = 2.0

        @jk.jit
        def __call__(self, x: Any, rounds: int) -> Any:
            y = x
            for _ in range(rounds):
                y = y * self.factor
            return y

    x, scaled = np.arange(4.0), Scaled()
    for rounds in (2, 0, 2, 0):
        found = scaled(x, rounds)
        np.testing.assert_array_equal(found, x * 2.0**rounds)
        assert (found is x) is (rounds == 0)


def test_bailouts_do_not_repeat_writes() -> None:
    def moved(x: Any, i: int) -> Any:
        x[i] += 1
        y = x
        for _ in range(i):
            y = y * 2
        return y

    fast = jk.jit(moved)
    for i in (2, 0, 2, 0, 7, 1):
        ours, theirs = np.arange(5.0), np.arange(5.0)
        if i < len(ours):
            np.testing.assert_array_equal(fast(ours, i), moved(theirs, i))
        else:
            with pytest.raises(IndexError):
                fast(ours, i)
        np.testing.assert_array_equal(ours, theirs)


def test_warnings_are_those_of_the_plain_function() -> None:
    fast, x = jk.jit(logs), np.array([1.0, 0.0])
    for _ in range(3):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            fast(x, 0)
        assert [str(one.message) for one in found] == ["divide by zero encountered in log"]


def test_derivatives_have_no_plain_function() -> None:
    slope = jk.grad(lambda x, i: picked(x, i))
    x = np.arange(5.0)
    for _ in range(3):
        np.testing.assert_array_equal(slope(x, 1), [0, 2, 2, 2, 0])
        with pytest.raises((IndexError, jk.JitKernelsError)):
            slope(x, 3)
