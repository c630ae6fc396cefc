"""Large kernels are built by helper processes, from when a trace meets them until the code that calls them is loaded.

LLVM compiles some kernels for a second each, of which a model calls several. `loader.built` waits for objects that are
being built. Callers hold `build_lock`.
"""

import atexit
import itertools
import os
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path

from jitkernels.codegen import object_cache
from jitkernels.codegen.compile_ahead import (
    AheadJob,
    begun,
    end_helpers,
    has_idle_helper,
    job_count,
    start_helpers,
    take_demand,
)
from jitkernels.codegen.ir_source import I64Source
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import DeferredIR, Source, symbol_of
from jitkernels.core import cpu_target, settings
from jitkernels.core.fork_locks import build_lock
from jitkernels.errors import BuildError
from jitkernels.runtime.loading import lazy_link, loader

LARGE_COST = 60_000
"""The cost of a kernel from which on a helper is worth its start, which takes as long; see `_cost`."""
FAIR_COST = LARGE_COST // 2
"""The cost from which on a job is worth sending to a helper that is idle."""
OPTIMIZED = 6
"""How many times as long LLVM takes for a character where it optimizes loops."""
FEW_OBJECTS = 16
"""Files in the cache of a user who has called no model yet, and hardly a function."""
_is_on: ContextVar[bool] = ContextVar("is_on", default=False)
_jobs: dict[str, tuple[AheadJob, Source]] = {}
_lazy: set[str] = set()
"""The jobs for kernels that are linked when a call asks for them."""
_soon: dict[str, Source] = {}
"""Kernels that calls are going to ask for, which this process builds while it waits for a helper."""
_later: dict[str, Source] = {}
"""Kernels for helpers that were all busy, in the order of the requests: the next that is done gets one."""
_process = os.getpid()


def prepare() -> None:
    """Start helpers where much may have to be built: what was built last was worth one, or the cache is about empty."""
    if settings.read("JITKERNELS_BACKEND") != "native" or not cpu_target.has_compiler():
        return
    with build_lock, suppress(OSError):
        folder = object_cache.objects_directory()
        if folder is not None and (take_demand() or not _has_many_objects(folder)):
            start_helpers()


def has_idle_core() -> bool:
    """Whether the load average leaves a core to a helper; on a busy machine one delays what it should speed up."""
    return os.getloadavg()[0] < cpu_target.cpu_count()


def _has_many_objects(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return len([*itertools.islice(entries, FEW_OBJECTS)]) == FEW_OBJECTS


def end_idle() -> None:
    """End the helpers if nothing is going to be built: a call that compiles nothing leaves no child process."""
    if not _is_on.get() and has_idle_helper() and not _own_jobs():
        end_helpers()


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
    """Let a helper build what is not built yet, if that takes long."""
    if not _is_on.get() or not isinstance(source, RangeKernel | I64Source):
        return
    symbol, jobs = symbol_of(source), _own_jobs()
    if symbol in jobs or object_cache.objects_directory() is None or loader.is_built(source):
        return
    _collect()
    _start(symbol, source)


def _start(symbol: str, source: RangeKernel | I64Source) -> None:
    """Give a job to a helper that is idle, or to a new one where that is worth its start."""
    jobs = _own_jobs()
    if len(jobs) < job_count() and _cost(source) >= (FAIR_COST if has_idle_helper() else LARGE_COST):
        job = begun(partial(source.object_code, symbol))
        if job is not None:
            jobs[symbol] = job, source


def begin_all(source: Source | None) -> None:
    """The same for a source and the kernels that it calls."""
    begin(source)
    for linked in () if source is None else _linked(source):
        begin(linked)


def begin_lazy(sources: Iterable[Source]) -> None:
    """Let helpers build what calls are going to ask for when they are linked, and what it links to."""
    if not _is_on.get():
        return
    wanted = {symbol_of(one): one for source in sources for one in (source, *_linked(source))}
    for symbol, source in wanted.items():
        begin(source)
        if symbol in _own_jobs():
            _lazy.add(symbol)
            continue
        if not loader.is_built(source):
            _soon[symbol] = source
        if len(_jobs) >= job_count() and isinstance(source, RangeKernel) and _cost(source) >= FAIR_COST:
            _later[symbol] = source


def build(*sources: Source) -> None:
    """Build sources and the kernels that they link to: what helpers do not build, this process builds meanwhile."""
    is_inner = _is_on.get()  # in a trace, whose jobs go on
    kernels = {symbol_of(kernel): kernel for source in sources for kernel in _linked(source)}
    jobs = _own_jobs()
    try:
        missing = [one for symbol, one in kernels.items() if symbol not in jobs and not loader.is_built(one)]
        if missing or jobs or has_idle_helper():
            _build_all(missing, [source for source in sources if not loader.is_built(source)])
        for symbol in [symbol for symbol in jobs if symbol in kernels]:
            while _soon and symbol in jobs and not jobs[symbol][0].is_done:
                with suppress(BuildError):  # who asks for it gets the error
                    loader.built(_soon.popitem()[1])
            if symbol in jobs:  # it was not kept while others were built
                _keep(symbol)
    finally:
        if not is_inner:
            _soon.clear()
            cancel(keeps=_lazy, ends_later=False)
            _begin_later()
            if not jobs:
                end_helpers()


def _build_all(kernels: Iterable[RangeKernel], sources: Iterable[Source]) -> None:
    """Build the kernels that take longest in helpers, as these are done with others, and all else here."""
    waiting, jobs = sorted(kernels, key=_cost), _own_jobs()
    here = [*sources]
    while waiting or here:
        if waiting and (here or len(waiting) > 1):
            with building_ahead(cached=True):
                begin(waiting[-1])
            if symbol_of(waiting[-1]) in jobs:
                waiting.pop()
                continue
        loader.built(here.pop() if here else waiting.pop(0))


def build_requested() -> bool:
    """Build and link what a call has requested, last what helpers are building; return whether there was any.

    Helpers that are idle, or become so meanwhile, build those that take longest. A call requests all that it lacks at
    once: what else helpers are building, it does not need. Raises BuildError.
    """
    with build_lock:
        jobs = _own_jobs()
        found = sorted(lazy_link.requested(), key=lambda one: (symbol_of(one.source) in jobs, _cost(one.source)))
        _later.clear()  # what else waits, the call does not need
        _later.update({symbol_of(one.source): one.source for one in reversed(found) if _cost(one.source) >= FAIR_COST})
        try:
            for function in found:
                function.bring()
        finally:
            if found and not _is_on.get():
                cancel()
                end_helpers()
    return bool(found)


@atexit.register
def cancel(keeps: AbstractSet[str] = frozenset(), *, ends_later: bool = True) -> None:
    """End the jobs for what nobody has built, but for some; `ends_later`: and begin none of those that wait."""
    jobs = _own_jobs()
    if ends_later:
        _later.clear()
    _collect()
    for symbol in jobs.keys() - keeps:
        job, _ = jobs.pop(symbol)
        job.cancel()
    _lazy.intersection_update(jobs)


def _collect() -> None:
    """Keep what helpers have built meanwhile, and give them what waits."""
    for symbol in [symbol for symbol, (job, _) in _own_jobs().items() if job.is_done]:
        _keep(symbol)
    _begin_later()


def _begin_later() -> None:
    """Begin jobs for kernels that wait, while helpers are idle."""
    jobs = _own_jobs()
    while _later and has_idle_helper() and len(jobs) < job_count():
        symbol = next(iter(_later))
        source = _later.pop(symbol)
        if isinstance(source, RangeKernel) and not loader.is_built(source):
            _start(symbol, source)
            _lazy.update({symbol} & jobs.keys())


def _keep(symbol: str) -> None:
    """Wait for the object of a job, and keep it."""
    job, source = _jobs.pop(symbol)
    _lazy.discard(symbol)
    content = job.result()
    if content is not None:
        loader.keep(source, content)


def _wait(symbol: str) -> None:
    """Wait for the object of a source that is about to be built, if a helper builds it."""
    _later.pop(symbol, None)
    if not _jobs and not _later:
        return
    if symbol in _own_jobs():
        _keep(symbol)
    else:
        _collect()


loader.begun_elsewhere.append(_wait)


def _own_jobs() -> dict[str, tuple[AheadJob, Source]]:
    """The jobs of this process; those of a parent are not ours to wait for."""
    global _process
    if _process != os.getpid():
        _process = os.getpid()
        _jobs.clear()
        _lazy.clear()
        _soon.clear()
        _later.clear()
    return _jobs


def _linked(source: Source) -> Iterator[RangeKernel]:
    """The kernels that code calls, but for those that are built when a call first needs them."""
    for external in source.externals:
        is_lazy = lazy_link.of_words(external.symbol) is not None
        linked = None if is_lazy or external.source is None else external.source()
        if isinstance(linked, RangeKernel):
            yield linked
            yield from _linked(linked)


def _cost(kernel: RangeKernel | I64Source) -> int:
    """An estimate of how long LLVM takes: from 1.7 to 2.4 us for each, on a processor of 2021."""
    if isinstance(kernel, I64Source):
        return LARGE_COST
    return len(kernel.text) * (1 if kernel.straight or isinstance(kernel.body, DeferredIR) else OPTIMIZED)
