"""First calls interrupted by Ctrl-C, by signal handlers that call kernels, and by other threads."""

import linecache
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Self

import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.core import fork_locks
from jitkernels.dispatch import operators
from jitkernels.dispatch.kernel_cache import KernelFuncs

PACKAGE = Path(jk.__file__).parent


class Disturbed:
    """Does something when a line of ours with that number is reached, counted from the beginning of a `with`."""

    def __init__(self, number: int, action: Callable[[], Any]) -> None:
        self.left, self.action = number, action

    def __enter__(self) -> Self:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(str(PACKAGE)):
            return None
        # Python reaches the line of a `with` again before it leaves, and calls no `__exit__` then if it is disturbed
        # there, which only a debugger can do.
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with "
        ):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                self.action()
        return self._trace


def interrupt() -> None:
    raise KeyboardInterrupt


def nested() -> None:
    """What a signal handler may do: the same call, and one of another size."""
    x = np.arange(1, 10, dtype=np.float32)
    assert np.array_equal(jk.vmul(x, x), x * x)
    a = np.ones((70, 3), np.float32)
    assert np.array_equal(jk.matmul(a, a.T), np.full((70, 70), 3, np.float32))


@pytest.mark.parametrize("action", [interrupt, nested])
def test_first_calls_may_be_interrupted_at_any_line(
    action: Callable[[], None], fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later calls are right, whatever was half done."""
    x = np.arange(1, 10, dtype=np.float32)
    jk.vmul(x, x)  # which stays the function that everybody else calls
    number, reached = 1, True
    while reached:
        operators.clear_tables()
        KernelFuncs.cache().clear()
        monkeypatch.setitem(operators._holders, "vmul", operators.Everyday(jk.VMulAttr))
        vmul = operators._holders["vmul"].callable
        disturbed = Disturbed(number, action)
        try:
            with disturbed:
                vmul(x, x)
        except KeyboardInterrupt:
            pass
        reached = disturbed.left <= 0
        assert not fork_locks.build_lock._is_owned(), number  # type: ignore[attr-defined]
        assert not fork_locks.writing._is_owned(), number  # type: ignore[attr-defined]
        for _ in range(2):
            assert np.array_equal(vmul(x, x), x * x), number
            assert np.array_equal(jk.vmul(x[:3], x[:3]), x[:3] * x[:3]), number
        number += 1
    assert number > 50, "there was nothing to disturb"


def test_the_linker_is_created_once() -> None:
    """A signal handler that needs it meanwhile gets one; a linker whose code is in use is never dropped."""
    code = """
import gc, signal
import numpy as np, jitkernels as jk
import llvmlite.binding as llvm
from jitkernels.runtime.loading import loader as load
load.load_object = lambda *arguments: None  # as on processors of which the package knows no object files
x = np.ones(5, "f4")
signal.signal(signal.SIGUSR1, lambda *_: jk.vmul(x, x))
real, once = llvm.initialize_native_asmprinter, []
def during():
    if not once:
        once.append(1)
        signal.raise_signal(signal.SIGUSR1)
    real()
llvm.initialize_native_asmprinter = during
jk.vmul(x, x)
gc.collect()
print(jk.vmul(x, x).sum(), len(once))
"""
    assert python(code) == "5.0 1\n"


def test_implementations_are_imported_again_after_an_interrupt() -> None:
    """Also where a signal handler looked them up meanwhile."""
    code = """
import builtins
import jitkernels as jk
from jitkernels.attrs.schema.registry import implementations
real, seen = builtins.__import__, []
def imported(name, *rest, **named):
    if name == "jitkernels.microkernels.maths.exp" or "exp" in str(rest[2:3]):
        if not seen:
            seen.append(name)
            try:
                jk.vexp([1.0])
            except Exception as error:
                raise KeyboardInterrupt from error
            raise KeyboardInterrupt
    return real(name, *rest, **named)
builtins.__import__ = imported
try:
    implementations(jk.VExpAttr)
except BaseException as error:
    pass
print(bool(seen), "gen" in implementations(jk.VExpAttr), round(float(jk.vexp([1.0])[0]), 3))
"""
    assert python(code) == "True True 2.718\n"


def test_threads_that_build_kernels_do_not_deadlock() -> None:
    """One requests all candidates, the other the best one."""
    code = """
import threading, time
import jitkernels as jk
from jitkernels.runtime.loading import loader as load
real = load.address_of
def slow(source):
    time.sleep(0.3)
    return real(source)
load.address_of = slow
other = threading.Thread(target=lambda: jk.get_all_candidates(jk.VMulAttr(n=5)))
other.start()
time.sleep(0.1)
jk.KernelFuncs.cache().at(jk.VExpAttr(n=5))
other.join()
print("done")
"""
    assert python(code, timeout=60) == "done\n"


def test_cached_properties_take_no_lock() -> None:
    """Python 3.11 has one lock for all its cached properties."""
    used = [
        path.name for path in PACKAGE.rglob("*.py") if re.search(r"@(functools\.)?cached_property", path.read_text())
    ]
    assert used == []
