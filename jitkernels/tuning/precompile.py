"""Build the candidates of a tuning run in parallel processes, one per core: nothing is timed meanwhile.

Thousands of candidates need far fewer objects. Each is built once, unless it is cached already. The processes share
nothing but the cache.
"""

import multiprocessing
import signal
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.codegen.object_cache import objects_directory
from jitkernels.core.cpu_target import cpu_count
from jitkernels.runtime.loading import loader
from jitkernels.runtime.loading.compiled_code import code_of
from jitkernels.selection.records import Record
from jitkernels.selection.size_classes import measured_member
from jitkernels.tuning.tune import candidates, still_open

Job = tuple[KernelAttr, str]
"""An attr, and the label of a candidate of its size class whose object is not built yet."""
WORTH_A_PROCESS = 8
"""Objects per worker that repay starting a process."""


def missing(attrs: Iterable[KernelAttr], alone: Mapping[KernelAttr, Record] | None = None) -> Iterator[Job]:
    """The builds that measuring attrs requires: one candidate for each object that is not cached.

    `alone`: the records of one thread, which exclude some candidates.
    """
    known: set[str] = set()
    for attr in attrs:
        member = measured_member(attr)
        for candidate in still_open(attr, (alone or {}).get(attr)):
            candidate_implementation = implementation(type(member), candidate.implementation)
            if candidate_implementation.is_reference:
                continue
            try:
                code = code_of(candidate_implementation.source(member, candidate.variant))
                if code.symbol in known:
                    continue
                known.add(code.symbol)
                if code.is_loaded or loader.is_built(code.source):
                    continue
            except Exception:  # noqa: BLE001  # any error of an implementation: measuring it reports it
                continue
            yield attr, candidate.label


def build(job: Job) -> None:
    """Build one object. A failed build is reported when the candidate is measured."""
    attr, label = job
    for candidate in candidates(measured_member(attr)):
        if candidate.label == label:
            with suppress(Exception):  # any error of an implementation: measuring it reports it
                candidate.callable()


def build_all(jobs: Sequence[Job]) -> Generator[Job]:
    """Build every job and yield it when done; without a cache or further cores, serially.

    A caller that stops early, as Ctrl-C does, waits for the objects in progress only.
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
        futures = {pool.submit(build, job): job for job in jobs}
        for done in as_completed(futures):
            done.result()
            yield futures[done]
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    """A terminal sends Ctrl-C to all processes; the parent decides when the workers stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
