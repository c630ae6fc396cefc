"""Building what is going to be measured, by as many processes as there are cores: nothing is timed meanwhile.

Thousands of candidates come to far fewer objects. Each is built once, and none that is there already. The processes
share nothing but the cache.
"""

import multiprocessing
import signal
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress

from jitkernels.attrs.base import KernelAttr
from jitkernels.machine import cpu_count
from jitkernels.measuring import candidates, still_open
from jitkernels.native import load
from jitkernels.native.cache import objects_directory
from jitkernels.native.code import code_of
from jitkernels.registry import implementation
from jitkernels.tuning.classes import measured_member
from jitkernels.tuning.store import Record

Job = tuple[KernelAttr, str]
"""An attr, and that candidate of its tuning class whose object is yet to be built."""
WORTH_A_PROCESS = 8
"""Objects that repay starting a process for them."""


def missing(attrs: Iterable[KernelAttr], alone: Mapping[KernelAttr, Record] | None = None) -> Iterator[Job]:
    """What is to be built before attrs can be measured: a candidate for each object that the cache does not have.

    `alone`: what was measured on one thread, after which fewer may win.
    """
    known: set[str] = set()
    for attr in attrs:
        member = measured_member(attr)
        for candidate in still_open(attr, (alone or {}).get(attr)):
            found = implementation(type(member), candidate.implementation)
            if found.is_reference:
                continue
            try:
                code = code_of(found.source(member, candidate.variant))
                if code.symbol in known:
                    continue
                known.add(code.symbol)
                if code.is_loaded or load.is_built(code.source):
                    continue
            except Exception:  # noqa: BLE001  # any implementation's: measuring it will say so
                continue
            yield attr, candidate.label


def build(job: Job) -> None:
    """Build one object. What cannot be built is left to those who measure it."""
    attr, label = job
    for candidate in candidates(measured_member(attr)):
        if candidate.label == label:
            with suppress(Exception):  # any implementation's: measuring it will say so
                candidate.callable()


def build_all(jobs: Sequence[Job]) -> Generator[Job]:
    """Each job when it has been done; without a cache or other cores there is nothing to gain.

    Who leaves early, as Ctrl-C does, waits for the objects under way alone.
    """
    workers = min(cpu_count(), len(jobs) // WORTH_A_PROCESS)
    if workers < 2 or objects_directory() is None:
        for job in jobs:
            build(job)
            yield job
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_interrupts_to_the_parent)
    try:
        given = {pool.submit(build, job): job for job in jobs}
        for done in as_completed(given):
            done.result()
            yield given[done]
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes; the parent says when these have nothing left to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
