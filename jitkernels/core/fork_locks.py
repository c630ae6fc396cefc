"""The locks of this package, taken in one order, and what a fork does with them.

A forked child has one thread and a copy of all memory: a lock that another thread held stays taken there for
ever, and what that thread was changing stays half changed. So a fork waits until nobody is inside, by taking
every lock first, in the order in which anybody else takes them:

1. `making`, while anything is registered, chosen, built, loaded or remembered;
2. `writing`, while a few words that belong together are written: nothing else is taken inside;
3. llvmlite's: not ours, but a child could compile nothing without it.

All of them are in one hook, since hooks of their own would run in the order of imports. Python's own lock of a
module that another thread is importing stays taken in a child as well, which then hangs when it imports the
same. A fork lets imports of `LAZY` end, which first calls need, and which need nothing of ours; others may last
as long as the program.
"""

import os
import sys
from _thread import RLock, _local, allocate_lock, get_ident  # of `threading`, which takes longer to import
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import _bootstrap
from typing import Any

LAZY = (
    "llvmlite", "numpy", "platformdirs", "importlib", "tempfile", "shlex", "shutil", "logging", "threading",
    "traceback", "string",
)  # fmt: skip
"""Packages of which parts are first imported by a call."""

_imports: Any = _bootstrap
_has_logging = "logging" in sys.modules
"""Then the hook below runs before that of `logging`, else behind it."""

making = RLock()
writing = RLock()
measuring = allocate_lock()
"""Held around `making` while anything is timed, which may take long: no fork waits for it, a child has its own."""


class _Held(_local):
    """What forks under way in this thread hold; more than one if a signal handler forks within a fork."""

    def __init__(self) -> None:
        self.stacks: list[ExitStack] = []


_held = _Held()


def _before_fork() -> None:
    stack = ExitStack()
    _held.stacks.append(stack)
    with _logging_left():
        stack.enter_context(making)
        stack.enter_context(writing)
        _wait_for_imports(stack)


def _wait_for_imports(stack: ExitStack) -> None:
    while True:
        for name in _being_imported():
            _imports._lock_unlock_module(name)  # waits, and imports nothing
        compiler = _take_compiler()
        if not _being_imported():
            stack.push(compiler)
            return
        compiler.close()  # an import may want it: it must not be waited for with that taken


@contextmanager
def _logging_left() -> Iterator[None]:
    """Give back the lock that a hook of `logging` took before ours, until ours are taken: those inside may log.

    That is so where it was imported behind this module, which does without until there is something to say.
    """
    lock: Any = None if _has_logging else getattr(sys.modules.get("logging"), "_lock", None)
    taken = 0
    while lock is not None and lock._is_owned():
        lock.release()
        taken += 1
    try:
        yield
    finally:
        for _ in range(taken):
            lock.acquire()


def _after_fork() -> None:
    _held.stacks.pop().close()


def _after_fork_in_child() -> None:
    global measuring
    measuring = allocate_lock()  # whoever measured is not here
    _after_fork()


def _being_imported() -> list[str]:
    """The modules of `LAZY` that other threads are importing."""
    locks = [(name, reference()) for name, reference in list(_imports._module_locks.items())]
    held = [(name, lock) for name, lock in locks if lock is not None and lock.count]
    mine = get_ident()
    return [name for name, lock in held if lock.owner != mine and name.partition(".")[0] in LAZY]


def _take_compiler() -> ExitStack:
    """Keep other threads of the program out of LLVM, if it is loaded."""
    taken = ExitStack()
    if "llvmlite.binding" in sys.modules:
        from llvmlite.binding import ffi

        taken.enter_context(getattr(ffi.lib, "_lock", nullcontext()))
    return taken


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
