"""Large kernels are built by helper processes, from when a trace meets them until the code that calls them is loaded.

LLVM compiles some kernels for a second each, of which a model calls several. Callers hold `build_lock`.
"""

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial

from jitkernels.codegen import object_cache
from jitkernels.codegen.compile_ahead import AheadJob, begun, end_helpers, job_count, start_helpers
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Source, symbol_of
from jitkernels.core import cpu_target, settings
from jitkernels.core.fork_locks import build_lock
from jitkernels.runtime.loading import lazy_link, loader

LARGE_KEY = 20_000
"""Characters of the key of a kernel, which grows with its code, from which on a helper is worth its start: other
kernels compile in less.
"""
FEW_OBJECTS = 8
"""Files in the cache of a process that has called no model and no function yet."""
_is_on: ContextVar[bool] = ContextVar("is_on", default=False)
_jobs: dict[str, tuple[AheadJob, RangeKernel]] = {}
_process = os.getpid()


def prepare() -> None:
    """Start helpers where the cache is about empty, so that much is going to be built."""
    if settings.read("JITKERNELS_BACKEND") != "native" or not cpu_target.has_compiler():
        return
    with build_lock, suppress(OSError):
        folder = object_cache.objects_directory()
        if folder is not None and len(os.listdir(folder)) < FEW_OBJECTS:
            start_helpers()


@contextmanager
def building_ahead(*, cached: bool) -> Iterator[None]:
    """Let `begin` begin jobs, if what is built goes to the cache."""
    token = _is_on.set(cached)
    try:
        yield
    finally:
        _is_on.reset(token)


def is_on() -> bool:
    """Whether `begin` begins jobs here."""
    return _is_on.get()


def begin(source: Source | None) -> None:
    """Let a helper build a kernel, if it is a large one that is not built yet."""
    if not _is_on.get() or not isinstance(source, RangeKernel) or not _is_large(source):
        return
    symbol, jobs = symbol_of(source), _own_jobs()
    if symbol in jobs or len(jobs) >= job_count() or loader.is_built(source):
        return
    if object_cache.objects_directory() is None:
        return
    job = begun(partial(source.object_code, symbol))
    if job is not None:
        jobs[symbol] = job, source


def build(*sources: Source) -> None:
    """Build sources and the kernels that they link to: what helpers do not build, this process builds meanwhile."""
    is_inner = _is_on.get()  # in a trace, whose jobs go on
    kernels = {symbol_of(kernel): kernel for source in sources for kernel in _linked(source)}
    jobs = _own_jobs()
    try:
        large = [kernel for kernel in kernels.values() if _is_large(kernel) and not loader.is_built(kernel)]
        if large:
            with building_ahead(cached=True):
                for kernel in large[1:]:
                    begin(kernel)
            for source in (*kernels.values(), *sources) if jobs else ():
                if symbol_of(source) not in jobs and not loader.is_built(source):
                    loader.built(source)
        for symbol, kernel in kernels.items():
            if symbol in jobs:
                content = jobs.pop(symbol)[0].result()
                if content is not None:
                    loader.keep(kernel, content)
    finally:
        if not is_inner:
            cancel()
            end_helpers()


@atexit.register
def cancel() -> None:
    """End the jobs for kernels that nobody has built."""
    jobs = _own_jobs()
    while jobs:
        _, (job, _) = jobs.popitem()
        job.cancel()


def _own_jobs() -> dict[str, tuple[AheadJob, RangeKernel]]:
    """The jobs of this process; those of a parent are not ours to wait for."""
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        _jobs.clear()
    return _jobs


def _linked(source: Source) -> Iterator[RangeKernel]:
    """The kernels that code calls, but for those that are built when a call first needs them."""
    for external in source.externals:
        is_lazy = lazy_link.of_words(external.symbol) is not None
        linked = None if is_lazy or external.source is None else external.source()
        if isinstance(linked, RangeKernel):
            yield linked
            yield from _linked(linked)


def _is_large(kernel: RangeKernel) -> bool:
    return kernel.identity is not None and len(kernel.identity.text) >= LARGE_KEY
