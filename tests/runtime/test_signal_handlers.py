"""Exceptions raised by signal handlers end a call anywhere: the compiler never takes them for its own."""

import functools
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.lowering import lower_graph
from jitkernels.core import signal_exceptions


class LateError(Exception):
    pass


def late(*_: object) -> None:
    raise LateError


class Handler:
    def __call__(self, *_: object) -> None:
        raise LateError

    def method(self, *_: object) -> None:
        raise LateError


@contextmanager
def alarmed(seconds: float, handler: Any = late) -> Iterator[None]:
    """A handler that is called after some time."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def counted(n: Any) -> Any:
    found: list[int] = []
    while len(found) < n:
        found.append(1)
        if len(found) > 10:
            found.pop()
    return found


def determinants(a: Any, n: Any) -> Any:
    total = 0.0
    for i in range(n):
        total += np.linalg.det(a + i)
    return total


def diffused(u: Any, n: Any) -> Any:
    for _ in range(n):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return u.sum()


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (counted, ()),
    (determinants, (np.eye(4),)),
    (diffused, (np.ones(99),)),
]


@pytest.mark.parametrize("config", [{}, {"profile": True}, {"backend": "interpreter"}], ids=str)
@pytest.mark.parametrize(("function", "given"), PROGRAMS)
def test_exceptions_of_handlers_end_loops(
    function: Callable[..., Any], given: tuple[Any, ...], config: dict[str, Any]
) -> None:
    compiled = jk.jit(function, **config)
    compiled(*given, 3)
    for handler in (late, Handler(), Handler().method, functools.partial(late, 1)):
        began = time.monotonic()
        with pytest.raises(LateError) as raised, alarmed(0.1, handler):
            compiled(*given, 10**9)
        assert raised.value.__context__ is None
        assert time.monotonic() - began < 20  # the loop takes much longer


def test_exceptions_of_handlers_end_traces() -> None:
    """Of a function without source text, whose loops are traced as Python runs them."""
    names: dict[str, Any] = {}
    exec("def slow(x, wait):\n    wait()\n    return x + 1\n", names)
    waits = 0

    def wait() -> None:
        nonlocal waits
        waits += 1
        signal.raise_signal(signal.SIGALRM)

    with pytest.raises(LateError), alarmed(99):
        jk.jit(names["slow"])(np.ones(3), wait)
    assert waits == 1  # the plain function is not called again


def test_exceptions_of_handlers_end_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = jk.jit(lambda x: np.exp(x) * 17.25)
    is_late = True
    truly = lower_graph.compile_graph

    def interrupted(*given: Any) -> Any:
        if is_late:
            signal.raise_signal(signal.SIGALRM)
        return truly(*given)

    monkeypatch.setattr(lower_graph, "compile_graph", interrupted)
    with pytest.raises(LateError), alarmed(99):
        compiled(np.ones(3))
    is_late = False
    compiled(np.ones(3))
    assert compiled.stats().kernels == 1  # nothing of it is left


def test_exceptions_of_the_function_are_no_handlers_exceptions() -> None:
    with pytest.raises(LateError) as raised:
        late()
    assert not signal_exceptions.raised_by_signal_handler(raised.value)
    with alarmed(99, signal.SIG_IGN):
        assert not signal_exceptions.raised_by_signal_handler(LateError())


class OwnError(BaseException):
    pass


def stops(x: Any) -> Any:
    if x.sum() > 1000:
        raise SystemExit("diverged")
    return x * 2


def interrupts(x: Any) -> Any:
    for i in range(len(x)):
        if x[i] > 1000:
            raise KeyboardInterrupt
    return x * 2


def leaves(x: Any) -> Any:
    while x.sum() < 100:
        x = x * 2
        if x[0] > 1000:
            raise OwnError("too much")
    return x * 2


def writes_first(x: Any) -> Any:
    x[0] = 1
    raise SystemExit(3)


@pytest.mark.parametrize("function", [stops, interrupts, leaves, writes_first])
def test_base_exceptions_are_raised_at_their_statement(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for x in (np.full(9, 0.5), np.full(9, 2000.0), np.full(300, 5.0), np.full(300, -2000.0)):
        if function is leaves and x[0] < 0:
            continue
        for _ in range(2):
            outcomes = []
            for one in (function, compiled):
                given = x.copy()
                try:
                    result, raised = one(given), None
                except (KeyboardInterrupt, SystemExit, OwnError) as error:
                    result, raised = None, error
                lines = [] if raised is None else _lines(raised)
                outcomes.append((np.array(result).tolist(), repr(raised), lines, given.tolist()))
            assert outcomes[0] == outcomes[1]


def _lines(error: BaseException) -> list[int]:
    """Where in functions of this file it was raised."""
    return [line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == __file__][1:]


def test_interrupts_of_a_trace_are_raised() -> None:
    names: dict[str, Any] = {}
    exec("def slow(x, wait):\n    if x.sum() > 3:\n        wait()\n    return x + 1\n", names)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            jk.jit(names["slow"])(np.ones(3000), lambda: os.kill(os.getpid(), signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_errors_have_no_internal_context() -> None:
    def found(x: Any, k: Any) -> Any:
        for i in range(len(x)):
            if x[i] > k:
                place = i
                break
        return place

    for function, wanted in ((found, UnboundLocalError), (lambda x, k: x[int(x[0] + k)], IndexError)):
        compiled: Any = jk.jit(function)
        for size in (3, 30_000):
            compiled(np.ones(size), 0)
            for _ in range(3):
                with pytest.raises(wanted) as raised:
                    compiled(np.ones(size), 30_000)
                assert raised.value.__context__ is None
                with pytest.raises(wanted) as raised:
                    _while_handling(compiled, np.ones(size), 30_000)
                assert isinstance(raised.value.__context__, KeyError)


def _while_handling(function: Callable[..., Any], *given: Any) -> None:
    try:
        raise KeyError
    except KeyError:
        function(*given)
