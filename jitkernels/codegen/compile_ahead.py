"""Compilation by helper processes, one for each job, while this process does something else.

Whatever goes wrong with a helper, its object is built here later, as all others are.
"""

import atexit
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import PurePath

from jitkernels.codegen import compiling
from jitkernels.codegen.compile_job import CompileJob
from jitkernels.codegen.compiler_process import ERROR, OBJECT, Helper, HelperLostError
from jitkernels.codegen.object_cache import bundled
from jitkernels.core import cpu_target, settings
from jitkernels.errors import BuildError

MAX_JOBS = 8
"""The most helpers at once, each of which takes some 95 MB."""


def job_count() -> int:
    """How many jobs may run at once; 0 where this process is to compile all of them."""
    cores = cpu_target.cpu_count()
    is_python = PurePath(sys.executable or "").name.startswith("python") and not hasattr(sys, "frozen")
    if cores < 2 or not is_python or settings.read("JITKERNELS_COMPILER") == "process":
        return 0
    return min(cores - 1, MAX_JOBS)  # this process traces meanwhile, or compiles as well


_idle: list[Helper] = []
"""Helpers without a job, which exit by themselves after a while."""
_process = os.getpid()


def start_helpers() -> None:
    """Start as many helpers as may be of use, which import LLVM meanwhile."""
    idle = _own_idle()
    with suppress(OSError):
        while len(idle) < job_count():
            idle.append(Helper())


class _Demand:
    """Whether there was work for a helper since `take_demand`."""

    noted = False


def note_demand() -> None:
    """Note that a helper has work, or would have had some: what is compiled next may be as large."""
    _Demand.noted = True


def take_demand() -> bool:
    """Whether a helper had work since the last call."""
    noted, _Demand.noted = _Demand.noted, False
    return noted


def has_idle_helper() -> bool:
    """Whether a helper waits for a job."""
    return bool(_own_idle())


@atexit.register
def end_helpers() -> None:
    """End the idle helpers."""
    idle = _own_idle()
    while idle:
        idle.pop().kill()


def _own_idle() -> list[Helper]:
    """The idle helpers of this process; those of a parent are not ours."""
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        _idle.clear()
    return _idle


class AheadJob:
    """A job in a helper process of its own."""

    def __init__(self, helper: Helper) -> None:
        self._helper = helper

    def result(self) -> bytes | None:
        """Wait for the object; None if there is none."""
        try:
            answer = self._helper.receive()
        except HelperLostError:
            return None
        _own_idle().append(self._helper)
        return None if answer.startswith(ERROR) else answer.removeprefix(OBJECT)

    @property
    def is_done(self) -> bool:
        """Whether `result` would not wait for long."""
        return self._helper.has_answered

    def cancel(self) -> None:
        """Kill the helper."""
        self._helper.kill()


def begun(make: Callable[[], bytes]) -> AheadJob | None:
    """The job that `make` would do, in a helper; None where there is no helper, or `make` compiles nothing."""
    with _handing_over() as jobs, suppress(compiling.HandedOverError, BuildError):
        make()
    if len(jobs) != 1:
        return None
    note_demand()
    idle = _own_idle()
    while idle:
        with suppress(HelperLostError):  # it was idle for too long
            helper = idle.pop()
            helper.send(jobs[0])
            return AheadJob(helper)
    with suppress(OSError, HelperLostError):
        helper = Helper()
        helper.send(jobs[0])
        return AheadJob(helper)
    return None


def compiled_in_parts(first: CompileJob, second: CompileJob) -> bytes:
    """Compile two modules of one source, the first of which calls functions of the second, to one bundle.

    An idle helper compiles the second one meanwhile, as in LLVM's ``splitCodeGen``. The bytes are the same whoever
    does. Raises BuildError if LLVM rejects the code.
    """
    note_demand()
    ahead = begun(lambda: compiling.compiled(second)) if has_idle_helper() else None
    try:
        code = compiling.compiled(first)
    except BaseException:
        if ahead is not None:
            ahead.cancel()
        raise
    other = None if ahead is None else ahead.result()
    return bundled([code, compiling.compiled(second) if other is None else other])


@contextmanager
def _handing_over() -> Iterator[Sequence[CompileJob]]:
    """Let compilations end with HandedOverError; their jobs are in the list."""
    jobs: list[CompileJob] = []
    token = compiling.taker.set(jobs.append)
    try:
        yield jobs
    finally:
        compiling.taker.reset(token)
