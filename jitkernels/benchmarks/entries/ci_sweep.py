"""``jitkernels bench ci-sweep``: what it costs to build every attr that CI tries, from an empty cache."""

import multiprocessing
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time
from typing import Any

from jitkernels.benchmark.processes import empty_cache, run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.kernel_funcs import get_all_candidates
from jitkernels.machine import cpu_count
from jitkernels.registry import row
from jitkernels.tuning.timer import Timing

CORES = 2
LIMIT = 90.0
"""Seconds that are promised for all rows on so many cores."""
SLOWEST = 5
"""Rows that are named."""


def verdict(lines: Sequence[Line]) -> Verdict:
    *rows, total = lines
    wall, cores = total.timings["wall"].seconds, int(total.figures["cores"])
    slowest = sorted(rows, key=lambda line: line.timings["cpu"].seconds, reverse=True)[:SLOWEST]
    named = ", ".join(f"{line.case} {line.timings['cpu'].seconds:.1f}" for line in slowest)
    return Verdict(
        f"{len(rows)} rows, {total.figures['objects']:.0f} objects in {wall:.0f} s on {cores} cores "
        f"({total.timings['cpu'].seconds:.0f} s of processor time; promised: {LIMIT:.0f} on {CORES}); most in {named}",
        wall <= LIMIT,
    )


@benchmark("ci-sweep", verdict=verdict)
def ci_sweep(settings: Settings) -> Iterator[Line]:
    """Building all implementations of every attr tagged "ci" from an empty cache, by a process on each core."""
    names = [found.kernel_type.name.lower() for found in settings.rows]
    with empty_cache() as folder:
        found = run(__name__, "build_all", names, cache=folder)
        objects = sum(1 for path in folder.glob("*/objects/*") if path.suffix in (".o", ".so"))
    for name, wall, cpu in found["rows"]:
        yield Line("ci-sweep", name, {"wall": Timing(wall, 0.0), "cpu": Timing(cpu, 0.0)})
    total = {"wall": Timing(found["wall"], 0.0), "cpu": Timing(found["cpu"], 0.0)}
    yield Line("ci-sweep", "all rows", total, figures={"objects": objects, "cores": found["cores"]})


def build_all(names: Sequence[str]) -> dict[str, Any]:
    """Build the rows, each in one of as many processes as there are cores, and say what that took."""
    cores = min(CORES, cpu_count())
    started = perf_counter()
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(build, names, chunksize=1))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    return {"rows": rows, "wall": perf_counter() - started, "cpu": cpu, "cores": cores}


def build(name: str) -> tuple[str, float, float]:
    """Build all that can compute the attrs of a row that CI tries; seconds on the clock and of the processor."""
    wall, cpu = perf_counter(), process_time()
    for case in row(name).sweep():
        if "ci" in case.tags:
            get_all_candidates(case.attr)
    return name, perf_counter() - wall, process_time() - cpu
