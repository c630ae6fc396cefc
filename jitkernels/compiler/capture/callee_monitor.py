"""Callee monitor: a profile hook that inspects the user functions called while a function is traced.

A hook at all calls costs three quarters of a trace, and most calls are internal. So internal functions suspend the hook
by `monitor_suspended`, `without_monitor` or `internal_unless_user_code`, and resume it by `watched` where they
call user functions.
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

from jitkernels.compiler.capture import free_variables
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PLAIN = frozenset({
    Traced, SymInt, Tracer, Frozen, np.ufunc, type(np.sum), NoneType, EllipsisType, bool, int, float, complex, str,
})  # fmt: skip
"""Types of values that contain no user code."""
KNOWN = ("numpy", "builtins")
"""Modules whose types and functions contain none either."""


class _Resting(threading.local):
    watch: Any = None
    """The hook of the innermost trace, while internal code runs."""


_resting = _Resting()


@contextmanager
def without_gc() -> Iterator[None]:
    """Disable the garbage collector, which finds nothing in a trace but takes long in large processes.

    Its callbacks and finalizers are no part of the traced function, either.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class Watch:
    """Inspects the functions called during a trace; records the first one that reads state that no guard checks.

    `refused`: what it reads; `callers`: the file and line of it and of each call around it.
    """

    def __init__(self, tables: set[int]) -> None:
        self.refused, self.callers = "", list[tuple[str, int]]()
        self._tables = tables
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before, self._resting = sys.getprofile(), _resting.watch
        if not (self._before is None or callable(self._before) or isinstance(self._before, _lsprof.Profiler)):
            raise UnsupportedError("the active profiler cannot be resumed after the trace")
        _resting.watch = None
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._before, _lsprof.Profiler):  # a C profiler is not a Python callable
            _lsprof.Profiler.enable(self._before)
        else:
            sys.setprofile(self._before)
        _resting.watch = self._resting

    def _called(self, frame: FrameType, event: str, _: Any) -> None:
        if event not in ("call", "return") or free_variables.is_of_library(frame.f_code.co_filename):
            return  # the common case
        if not self.refused and event == "call" and id(frame.f_globals) not in self._tables:
            self.refused = free_variables.is_tracked(frame)
        if not self.refused:
            self.refused = free_variables.read_of_classes(frame)
        if self.refused and not self.callers:
            self.callers = _places(frame)


def _places(frame: FrameType | None) -> list[tuple[str, int]]:
    """The file and line of a frame and of those around it, the innermost first."""
    places: list[tuple[str, int]] = []
    while frame is not None:
        places.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return places


def _hook() -> Any:
    """The active hook; None where it is not that of a trace."""
    profile_hook = sys.getprofile()
    return profile_hook if type(getattr(profile_hook, "__self__", None)) is Watch else None


@contextmanager
def monitor_suspended() -> Iterator[None]:
    """Suspend the hook: nothing called inside is part of the user's function (kernels, references)."""
    hook = _hook()
    if hook is None:
        yield
        return
    sys.setprofile(None)
    try:
        yield
    finally:
        sys.setprofile(hook)


def without_monitor(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Suspend the hook during an internal function, which calls user functions through `watched` only."""

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        hook = _hook()
        if hook is None:
            return function(*arguments, **keywords)
        before, _resting.watch = _resting.watch, hook
        sys.setprofile(None)
        try:
            return function(*arguments, **keywords)
        finally:
            _resting.watch = before
            sys.setprofile(hook)

    return call


def internal_unless_user_code(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Suspend the hook during an internal function unless its arguments contain user code."""
    rests = without_monitor(function)

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **keywords: Parameters.kwargs) -> Result:
        if all(map(_is_plain, arguments)) and all(map(_is_plain, keywords.values())):
            return rests(*arguments, **keywords)
        return function(*arguments, **keywords)

    return call


def watched(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **keywords: Parameters.kwargs
) -> Result:
    """``function(*arguments, **keywords)`` of a user function, with the hook resumed."""
    hook = _resting.watch
    if hook is None:
        return function(*arguments, **keywords)
    _resting.watch = None
    sys.setprofile(hook)
    try:
        return function(*arguments, **keywords)
    finally:
        sys.setprofile(None)
        _resting.watch = hook


def _is_plain(value: Any) -> bool:
    """Whether a value contains no user code."""
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
