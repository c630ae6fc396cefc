"""``jitkernels bench dask``: an expression of five operations over chunks of 64 MB, on local workers of one thread.

The compiled function beside plain `dask.array` on two workers, and beside itself on one; and what a task costs beyond
the same task with a plain function. Data and results stay on the workers.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter, sleep
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.errors import NotUsableError
from jitkernels.tuning.timer import Timing

TWO, PLAIN, ONE = "jit, 2 workers", "dask.array, 2 workers", "jit, 1 worker"
PROMISED = {PLAIN: 3.0, ONE: 1.8}
PROMISED_OVERHEAD_US = 100.0
CHUNK_BYTES, CHUNKS, SMALL_CHUNK, FEW_CHUNKS = 1 << 26, 32, 1 << 12, 4
"""Two gigabytes, and as many of results; the smallest runs take the other numbers."""
TASKS, FEW_TASKS, TIMED_TURNS = 500, 20, 3
RELEASE_SECONDS = 0.3
"""Within this time workers release a result."""
OVERHEAD, DASK_TASK = "us of a task beyond", "us of a task, dask"


def expression(x: Any, k: float = 0.5) -> Any:
    """Five operations; NumPy makes four arrays between them."""
    return np.sin(x) * k + np.tanh(np.exp(x))


def verdict(lines: Sequence[Line]) -> Verdict:
    """Speed over plain dask.array and over one worker, and the overhead of a task."""
    words, holds = [], True
    for line in lines:
        for name, least in PROMISED.items():
            ratio = line.speed_over(name)
            if ratio is not None:
                words.append(f"{ratio:.2f} times {name} (promised: {least:g})")
                holds = holds and ratio >= least
        overhead = line.figures[OVERHEAD]
        words.append(f"{overhead:.0f} us of a task beyond dask's own (promised: {PROMISED_OVERHEAD_US:g})")
        holds = holds and overhead < PROMISED_OVERHEAD_US
    return Verdict("; ".join(words), holds)


@benchmark("dask", verdict=verdict, against=PLAIN)
def dask_blocks(settings: Settings) -> Iterator[Line]:
    """Five operations over dask arrays in chunks of 64 MB, compiled and plain, on one worker and on two."""
    if importlib.util.find_spec("distributed") is None:
        raise NotUsableError("dask: expected dask to be installed: pip install 'jitkernels[dask]'")
    found = run(__name__, "child", settings.is_tiny)
    timings = {name: Timing(min(seconds), max(seconds) / min(seconds) - 1) for name, seconds in found["times"].items()}
    yield Line("expression", found["case"], timings, TWO, figures=found["figures"])


def child(is_tiny: bool) -> dict[str, Any]:
    """The seconds of all contestants, and what tasks cost in microseconds."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    compiled = jk.jit(expression)
    chunk, chunks = (SMALL_CHUNK, FEW_CHUNKS) if is_tiny else (CHUNK_BYTES, CHUNKS)
    times: dict[str, list[float]] = {}
    figures: dict[str, float] = {}
    for workers in (2, 1):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            x = da.random.default_rng(0).random(chunk // 8 * chunks, chunks=chunk // 8)
            x = client.persist(x)
            wait(x)
            calls: dict[str, Callable[..., Any]] = {ONE: compiled}
            if workers == 2:
                calls = {TWO: compiled, PLAIN: expression}
            for turn in range(2 if is_tiny else TIMED_TURNS + 1):
                for name, call in calls.items():
                    began = perf_counter()
                    result = client.persist(call(x, 0.5 + turn))  # another result each time: none is there already
                    wait(result)
                    if turn:
                        times.setdefault(name, []).append(perf_counter() - began)
                    del result
                    sleep(RELEASE_SECONDS)
            if workers == 2:
                del x
                figures = _overhead(client, da, compiled, FEW_TASKS if is_tiny else TASKS)
    return {"times": times, "figures": figures, "case": f"{chunks} chunks of {chunk >> 20} MB"}


def _overhead(client: Any, da: Any, compiled: Any, tasks: int) -> dict[str, float]:
    """Microseconds of a task with a plain function, and what one with a compiled function costs beyond that."""
    from distributed import wait

    x = client.persist(da.arange(8.0 * tasks, chunks=8) / (8 * tasks))
    wait(x)
    seconds: dict[str, list[float]] = {}
    for turn in range(TIMED_TURNS + 1):
        for name, result in (("jit", compiled(x, 0.5 + turn)), ("plain", x.map_blocks(expression, 0.5 + turn))):
            began = perf_counter()
            wait(client.persist(result))
            if turn:
                seconds.setdefault(name, []).append(perf_counter() - began)
    each = {name: min(several) / tasks * 1e6 for name, several in seconds.items()}
    return {OVERHEAD: round(each["jit"] - each["plain"], 1), DASK_TASK: round(each["plain"], 1)}
