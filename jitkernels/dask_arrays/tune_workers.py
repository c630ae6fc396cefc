"""Tuning by the workers of a Dask scheduler: size classes are spread over machines of one kind of CPU.

One worker of each machine measures, one class at a time, as two measurements would disturb each other. The records are
stored here and by all of these workers, so that their tables are the same. A class whose worker dies is measured by
another one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from distributed import Client, wait
from distributed.scheduler import KilledWorker

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.core.cpu_target import cpu_name
from jitkernels.core.environment import environment_of_timings
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import NotUsableError
from jitkernels.runtime.threads import num_threads
from jitkernels.selection import records
from jitkernels.selection.records import Record
from jitkernels.tuning.tune import tune_class

BUILD_SECONDS = 60.0
"""Limit for building the candidates of a class."""
POLL_SECONDS = 2.0
"""How often to look whether workers have died."""


class MeasuredClasses(NamedTuple):
    """The records of one number of threads, and how many classes each worker measured."""

    records: dict[KernelAttr, Record]
    workers: Counter[str]


def tune_on_workers(
    client: Client, attrs: Sequence[KernelAttr], *, threads: int, seconds: float, say: Callable[[str], None]
) -> MeasuredClasses:
    """Measure classes on the machines of a client's workers, and store the records there and here.

    Raises NotUsableError where no worker has the CPU and the versions of this process, so that records would not be
    used here.
    """
    workers = machines_like_this(client, threads)
    queue, found, done = [*reversed(attrs)], dict[KernelAttr, Record](), Counter[str]()
    active: dict[Any, tuple[str, KernelAttr]] = {}
    while queue or active:
        busy = {worker for worker, _ in active.values()}
        for worker in [one for one in workers if one not in busy][: len(queue)]:
            attr = queue.pop()
            future = client.submit(_measure, attr, threads, seconds, workers=[worker], pure=False)
            active[future] = worker, attr
        if not active:
            break
        with suppress(TimeoutError):
            wait([*active], timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        for future in [one for one in active if one.status == "finished"]:
            worker, attr = active.pop(future)
            found[attr] = future.result()
            done[worker] += 1
            records.save(attr, found[attr], threads)
            say(f"{threads} threads: measured {len(found)} of {len(attrs)}, {attr.name} {attr.text()} by {worker}")
        for future in [one for one in active if one.status in ("error", "cancelled")]:
            worker, attr = active.pop(future)
            if future.status == "error" and not isinstance(future.exception(), KilledWorker):
                future.result()  # raises what the measurement raised
            queue.append(attr)
        alive = _addresses(client)
        if not alive.issuperset(workers):  # a task that is bound to a dead worker waits for ever
            for future in [one for one, (worker, _) in active.items() if worker not in alive]:
                queue.append(active.pop(future)[1])
                future.cancel()
            with suppress(NotUsableError):
                workers = machines_like_this(client, threads)
            workers = [one for one in workers if one in alive]
    if len(found) < len(attrs):
        raise NotUsableError(f"tune: {len(attrs) - len(found)} classes were not measured: all workers have died")
    client.run(_store, [*found.items()], threads, workers=workers)
    return MeasuredClasses(found, done)


def _addresses(client: Client) -> set[str]:
    """The addresses of the workers that the scheduler has now."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


def machines_like_this(client: Client, threads: int) -> list[str]:
    """One worker of each machine that has the CPU and the versions of this process. Raises NotUsableError."""
    own = environment_of_timings(threads)
    kinds = client.run(environment_of_timings, threads)
    alike = sorted(address for address, kind in kinds.items() if kind == own)
    if not alike:
        others = ", ".join(sorted({kind["cpu"] for kind in kinds.values()})) or "none"
        raise NotUsableError(f"tune: expected workers with this CPU ({cpu_name()}) and these versions, got {others}")
    hosts = {address: info["host"] for address, info in client.scheduler_info(n_workers=-1)["workers"].items()}
    return [*{hosts[address]: address for address in reversed(alike)}.values()]


def _measure(attr: KernelAttr, threads: int, seconds: float) -> Record:
    before = num_threads.get_num_threads()
    _set_threads(threads)
    try:
        return tune_class(attr, budget=seconds, build_budget=BUILD_SECONDS)
    finally:
        _set_threads(before)


def _store(measured: Sequence[tuple[KernelAttr, Record]], threads: int) -> None:
    for attr, record in measured:
        records.save(attr, record, threads)


def _set_threads(threads: int) -> None:
    num_threads.set_num_threads(threads)
    KernelFuncs.cache().clear()
