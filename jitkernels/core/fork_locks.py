"""The locks of this package, their order, and the fork hook that holds them.

A forked child has one thread and a copy of all memory: a lock that another thread held stays locked there for ever,
and the data it protected stays half changed. So a fork takes every lock first, in the order in which all other code
takes them:

1. `build_lock`, while anything is registered, selected, built, loaded or cached;
2. `writing`, while a few machine words that belong together are written: no other lock is taken inside;
3. llvmlite's: not ours, but a child could compile nothing without it.

One fork hook takes all of them, since separate hooks would run in the order of imports. Python's own import lock of a
module that another thread is importing stays locked in a child as well, which then hangs when it imports the same
module. A fork waits for imports of `LAZY`: first calls need these, and they need nothing of ours; other imports may
last as long as the program.
"""

import os
import sys
from _thread import RLock, _local, allocate_lock, get_ident  # `threading` takes longer to import
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import _bootstrap
from typing import Any

LAZY = (
    "llvmlite", "numpy", "platformdirs", "importlib", "tempfile", "shlex", "shutil", "logging", "threading",
    "traceback", "string",
)  # fmt: skip
"""Packages whose modules a call may import for the first time."""

_imports: Any = _bootstrap
_has_logging = "logging" in sys.modules
"""True: the hook below runs before that of `logging`; False: after it."""

build_lock = RLock()
writing = RLock()
measure_lock = allocate_lock()
"""Held around `build_lock` during timings, which may take long: no fork waits for it, and a child gets a new one."""


class _Held(_local):
    """Locks that the forks in progress in this thread hold; more than one if a signal handler forks within a fork."""

    def __init__(self) -> None:
        self.stacks: list[ExitStack] = []


_held = _Held()


def _before_fork() -> None:
    stack = ExitStack()
    _held.stacks.append(stack)
    with _logging_lock_released():
        stack.enter_context(build_lock)
        stack.enter_context(writing)
        _wait_for_imports(stack)


def _wait_for_imports(stack: ExitStack) -> None:
    while True:
        for name in _modules_in_import():
            _imports._lock_unlock_module(name)  # waits for the import, and imports nothing itself
        compiler = _hold_compiler_lock()
        if not _modules_in_import():
            stack.push(compiler)
            return
        compiler.close()  # an import may need it: release it before waiting for that import


@contextmanager
def _logging_lock_released() -> Iterator[None]:
    """Release the lock that `logging`'s own fork hook took before ours, until ours are held: code inside them may log.

    That happens if `logging` was imported after this module, which imports it only when there is a message.
    """
    lock: Any = None if _has_logging else getattr(sys.modules.get("logging"), "_lock", None)
    count = 0
    while lock is not None and lock._is_owned():
        lock.release()
        count += 1
    try:
        yield
    finally:
        for _ in range(count):
            lock.acquire()


def _after_fork() -> None:
    _held.stacks.pop().close()


def _after_fork_in_child() -> None:
    global measure_lock
    measure_lock = allocate_lock()  # the measuring thread does not exist in the child
    _after_fork()


def _modules_in_import() -> list[str]:
    """The modules of `LAZY` that other threads are importing."""
    locks = [(name, reference()) for name, reference in list(_imports._module_locks.items())]
    locked = [(name, lock) for name, lock in locks if lock is not None and lock.count]
    own_thread = get_ident()
    return [name for name, lock in locked if lock.owner != own_thread and name.partition(".")[0] in LAZY]


def _hold_compiler_lock() -> ExitStack:
    """Take llvmlite's lock, if it is loaded, so that no other thread is inside LLVM."""
    stack = ExitStack()
    if "llvmlite.binding" in sys.modules:
        from llvmlite.binding import ffi

        stack.enter_context(getattr(ffi.lib, "_lock", nullcontext()))
    return stack


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
