"""Code that may take longer than Python is compared with the plain function on real calls; the faster one is linked."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch.dispatch_chain import MAX_CALLS_BETWEEN_LOOKS
from jitkernels.compiler.dispatch.python_call_stats import COMPARED, Timings
from jitkernels.runtime.inline_cache import MANY_BAILOUTS

SETTLING = 20
"""Calls after which a trial is over."""
MANY = [float(i) for i in range(150)]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[[float, float], None]:
    """Sets what trials measure: the seconds of compiled code and of the plain function."""
    note = Timings.note

    def let(compiled: float, plain: float) -> None:
        def noted(timings: Timings, _: float, *, is_plain: bool) -> None:
            note(timings, plain if is_plain else compiled, is_plain=is_plain)

        monkeypatch.setattr(Timings, "note", noted)

    return let


def doubled(values: list[float]) -> list[float]:
    return [2 * value for value in values]


def ordered(x: Any, n: int) -> Any:
    total = np.zeros(3)
    for i in range(n):
        total += np.argpartition(x[i : i + 3] * 2, 1)
    x[0] += 1
    return total


def looked_up(x: Any, i: int) -> Any:
    total = 0.0
    for k in range(len(x)):
        total += x[k] * x[i]
    return total


def logged(x: Any, log: list[float]) -> Any:
    for i in range(4):
        y = np.sqrt(x * x + i) / (1 + np.exp(-x))
        log.append(float(y[0]))
        x = x + y
    return x


def ranked(x: Any) -> Any:
    total = np.zeros(3)
    for i in range(2):
        total += np.argpartition(x[i : i + 3], 1)
    return x[1:4], total


def looks(function: Any) -> int:
    """The calls of a function so far that were part of a trial."""
    return int(dict(function.stats().python_reasons).get(COMPARED, 0))


def test_the_faster_one_serves_calls(times: Callable[[float, float], None]) -> None:
    for compiled, plain, expected in ((3e-6, 1e-6, "the plain function takes less time: 1 us"), (1e-6, 2e-6, "")):
        times(compiled, plain)
        function = jk.jit(doubled)
        for _ in range(SETTLING):
            assert function(MANY) == doubled(MANY)
        settled = looks(function)
        for _ in range(100):
            assert function(MANY) == doubled(MANY)
        assert looks(function) == settled
        assert expected in function.explain(MANY).entry_reason
        assert bool(expected) == bool(function.explain(MANY).entry_reason)


def test_each_call_runs_one_of_the_two(times: Callable[[float, float], None]) -> None:
    for compiled, plain in ((3e-6, 1e-6), (1e-6, 2e-6)):
        times(compiled, plain)
        function, x = jk.jit(ordered), np.arange(9.0)
        for call in range(SETTLING):
            assert x[0] == call
            expected = ordered(x.copy(), 4)
            assert np.array_equal(function(x, 4), expected)
        assert looks(function)


def test_larger_arrays_are_compared_again(times: Callable[[float, float], None]) -> None:
    times(3e-6, 1e-6)
    function = jk.jit(ordered)
    for _ in range(SETTLING):
        function(np.arange(9.0), 4)
    times(1e-6, 3e-6)
    before = looks(function)
    for _ in range(SETTLING):
        function(np.arange(900.0), 4)
    assert looks(function) > before
    assert not function.explain(np.arange(900.0), 4).entry_reason


@pytest.mark.parametrize("make", [lambda f: jk.jit(f, strict=True), lambda f: jk.jit(f, profile=True)])
def test_some_functions_run_compiled_code_alone(make: Any, times: Callable[[float, float], None]) -> None:
    times(3e-6, 1e-6)
    function = make(doubled)
    for _ in range(SETTLING):
        function(MANY)
    assert not looks(function)


def test_decisions_by_time_may_be_excluded(
    monkeypatch: pytest.MonkeyPatch, times: Callable[[float, float], None]
) -> None:
    monkeypatch.setenv("JITKERNELS_POLICY", "reproducible")
    times(3e-6, 1e-6)
    function = jk.jit(doubled)
    for _ in range(SETTLING):
        function(MANY)
    assert not looks(function)


def test_loops_over_arrays_are_linked_at_once() -> None:
    function = jk.jit(looked_up)
    for _ in range(SETTLING):
        function(np.ones(9), 3)
    assert not looks(function)


def test_code_that_bails_out_of_every_call_is_left_until_it_does_not(times: Callable[[float, float], None]) -> None:
    times(3e-6, 1e-6)
    function, x = jk.jit(looked_up), np.ones(9)
    for _ in range(MANY_BAILOUTS + SETTLING):
        with pytest.raises(IndexError):
            function(x, 9)
    assert "the code bails out" in function.explain(x, 3).entry_reason
    times(1e-6, 3e-6)
    for _ in range(MAX_CALLS_BETWEEN_LOOKS + SETTLING):
        assert function(x, 3) == 9
    assert not function.explain(x, 3).entry_reason


def test_a_call_with_out_is_compiled_code() -> None:
    function, out = jk.jit(np.argsort), np.zeros(3, np.int64)
    assert function(np.array([3.0, 1.0, 2.0]), out=out) is out
    assert list(out) == [1, 2, 0]


def test_a_function_that_breaks_is_compared_as_a_whole(times: Callable[[float, float], None]) -> None:
    x = np.linspace(0, 1, 50)
    for compiled, plain, expected in (
        (3e-6, 1e-6, "runs all of it, at the sizes of latest calls: 1 us"),
        (1e-6, 2e-6, ""),
    ):
        times(compiled, plain)
        function, log, plain_log = jk.jit(logged), [], []  # type: Any, list[float], list[float]
        for _ in range(2 * SETTLING):
            np.testing.assert_allclose(function(x, log), logged(x, plain_log))
        np.testing.assert_allclose(log, plain_log)
        explained = str(function.explain(x, log))
        assert ("runs all of it" in explained) == bool(expected)
        assert expected in explained
        assert "break in line" in explained


@pytest.mark.parametrize("profitable", [False, True])
def test_threads_share_a_trial(profitable: bool, times: Callable[[float, float], None]) -> None:
    """Each thread gets its results, whichever of them decides, and whatever sizes others pass."""
    times(1e-6 if profitable else 2e-6, 2e-6 if profitable else 1e-6)
    listed, bailing = jk.jit(doubled), jk.jit(looked_up)

    def work(seed: int) -> None:
        for turn in range(3 * MANY_BAILOUTS):
            values = [float(seed + turn + i) for i in range(150)]
            assert listed(values) == doubled(values)
            x = np.arange(1.0 + (seed + turn) % 50)
            with pytest.raises(IndexError):
                bailing(x, len(x))

    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(work, range(6))] == 6 * [None]


def test_out_of_calls_that_the_link_refuses() -> None:
    """Copies of views are made by the plain function."""
    x, function = np.array([3.0, 1.0, 2.0, 0.5, 4.0]), jk.jit(ranked)
    for _ in range(SETTLING):
        out = np.empty(3), np.empty(3)
        assert function(x, out=out) is out
        for got, expected in zip((*out, *function(x)), ranked(x) * 2, strict=True):
            assert got.tolist() == expected.tolist()
    assert looks(function) > 1, "there was no trial"
