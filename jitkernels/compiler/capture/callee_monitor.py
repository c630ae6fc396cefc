"""What is looked at while a function is traced: the functions of users that it calls, whoever calls them.

Looking costs three quarters of a trace where it is done at all calls, most of which are of ours. So what is ours says
so, by `unwatched`, `resting` or `of_ours`, and says by `watched` where it calls functions of users.
"""

import _lsprof
import functools
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import EllipsisType, FrameType, FunctionType, NoneType
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from jitkernels.frontends import captured
from jitkernels.frontends.frozen import Frozen
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph.construct import UnknownError

Given = ParamSpec("Given")
Found = TypeVar("Found")

PLAIN = frozenset({
    Traced, Whole, Tracer, Frozen, np.ufunc, type(np.sum), NoneType, EllipsisType, bool, int, float, complex, str,
})  # fmt: skip
"""Types of what has no code of users."""
KNOWN = ("numpy", "builtins")
"""Where types and functions are from that have none either."""


class _Resting(threading.local):
    watch: Any = None
    """The hook of the innermost trace, while what runs is ours."""


_resting = _Resting()


@contextmanager
def uncollected() -> Iterator[None]:
    """Let the garbage collector wait, which finds nothing in a trace but takes long where a process has much else.

    Its callbacks and finalisers are no part of the function that is traced, either.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Watch:
    """Looks at what functions are called while one is traced: those that read what no call would look at again."""

    def __init__(self, tables: set[int]) -> None:
        self.refused = ""
        self._tables = tables
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before, self._resting = sys.getprofile(), _resting.watch
        if not (self._before is None or callable(self._before) or isinstance(self._before, _lsprof.Profiler)):
            raise UnknownError("the profiler that is at work could not be told to go on")
        _resting.watch = None
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._before, _lsprof.Profiler):  # which Python calls by a function of C's
            _lsprof.Profiler.enable(self._before)
        else:
            sys.setprofile(self._before)
        _resting.watch = self._resting

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return") or captured.is_of_library(frame.f_code.co_filename):
            return  # as nearly always
        if not self.refused and event == "call" and id(frame.f_globals) not in self._tables:
            self.refused = captured.is_tracked(frame)
        if not self.refused:
            self.refused = captured.read_of_classes(frame)


def _hook() -> Any:
    """The hook in force; None where that is not a trace's."""
    found = sys.getprofile()
    return found if type(getattr(found, "__self__", None)) is Watch else None


@contextmanager
def unwatched() -> Iterator[None]:
    """In this, nothing that is called or read is part of the user's function: rows, kernels, references."""
    hook = _hook()
    if hook is None:
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(hook)


def resting(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """A function of ours, which calls those of users through `watched` alone."""

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Found:
        hook = _hook()
        if hook is None:
            return function(*given, **named)
        before, _resting.watch = _resting.watch, hook
        sys.setprofile(None)
        try:
            return function(*given, **named)
        finally:
            _resting.watch = before
            sys.setprofile(hook)

    return call


def of_ours(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """A function of ours, which calls those of users only if it is given any, or objects that have some."""
    rests = resting(function)

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Found:
        if all(map(_is_plain, given)) and all(map(_is_plain, named.values())):
            return rests(*given, **named)
        return function(*given, **named)

    return call


def watched(function: Callable[Given, Found], *given: Given.args, **named: Given.kwargs) -> Found:
    """``function(*given, **named)`` of a function of users, or of what is made of one."""
    hook = _resting.watch
    if hook is None:
        return function(*given, **named)
    _resting.watch = None
    sys.setprofile(hook)
    try:
        return function(*given, **named)
    finally:
        sys.setprofile(None)
        _resting.watch = hook


def _is_plain(value: Any) -> bool:
    """Whether there is no code of users in a value."""
    kind = type(value)
    if kind in PLAIN:
        return True
    if kind in (tuple, list):
        return all(map(_is_plain, value))
    if kind is slice:
        return _is_plain(value.start) and _is_plain(value.stop) and _is_plain(value.step)
    if kind is dict:
        return all(map(_is_plain, value)) and all(map(_is_plain, value.values()))
    if kind is np.ndarray:
        return not value.dtype.hasobject
    if kind is type or kind is FunctionType:
        return value.__module__.partition(".")[0] in KNOWN
    return isinstance(value, np.generic | np.dtype) and kind.__module__.partition(".")[0] == "numpy"
