"""The locks of this package, taken in one order, and what a fork does with them.

A forked child has one thread and a copy of all memory: a lock that another thread held stays taken there for
ever, and what that thread was changing stays half changed. So a fork waits until nobody is inside, by taking
every lock first, in the order in which anybody else takes them:

1. `making`, while anything is registered, chosen, built, loaded or remembered;
2. `writing`, while a few words that belong together are written: nothing else is taken inside;
3. numba's compiler lock, then llvmlite's: not ours, but a child could compile nothing without them.

All of them are in one hook, since hooks of their own would run in the order of imports. Python itself keeps a
lock for each module that is being imported, and none of them is mended in a child, which could never import
that module: a fork lets imports finish that other threads have begun, of what a first call may need.
"""

import logging  # noqa: F401  # before the hook, which then runs earlier than logging's: those inside may log
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib import _bootstrap  # type: ignore[attr-defined]

making = threading.RLock()
writing = threading.RLock()


def _in_order() -> Iterator[AbstractContextManager[object]]:
    yield making
    yield writing
    import numpy.random  # noqa: F401  # lazy in NumPy, and quick: here it is surely whole

    for name in ("numba", "cffi"):
        _bootstrap._lock_unlock_module(name)  # type: ignore[attr-defined]  # waits, and imports nothing
    if "numba.core.compiler_lock" in sys.modules:
        from numba.core.compiler_lock import global_compiler_lock

        yield global_compiler_lock
    if "llvmlite.binding" in sys.modules:
        from llvmlite.binding import ffi

        yield getattr(ffi.lib, "_lock", nullcontext())


class _Held(threading.local):
    """What forks under way in this thread hold; more than one if a signal handler forks within a fork."""

    def __init__(self) -> None:
        self.stacks: list[ExitStack] = []


_held = _Held()


def _before_fork() -> None:
    stack = ExitStack()
    _held.stacks.append(stack)
    for lock in _in_order():
        stack.enter_context(lock)


def _after_fork() -> None:
    _held.stacks.pop().close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
