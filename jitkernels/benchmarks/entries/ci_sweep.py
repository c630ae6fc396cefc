"""``jitkernels bench ci-sweep``: cost of building every attr that CI tests, from an empty cache."""

import itertools
import multiprocessing
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time
from typing import Any

from jitkernels.attrs.schema.registry import row
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.core.cpu_target import cpu_count
from jitkernels.dispatch.kernel_cache import get_all_candidates
from jitkernels.tuning.timer import Timing

CORES = 2
LIMIT = 90.0
"""Promised seconds for all rows on CORES cores."""
SLOWEST = 5
"""Number of rows that the verdict names."""


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
    names = [row.kernel_type.name.lower() for row in settings.rows]
    with empty_cache() as folder:
        row = run(__name__, "build_all", names, 1 if settings.is_tiny else None, cache=folder)
        objects = sum(1 for path in folder.glob("*/objects/*") if path.suffix in (".o", ".so"))
    for name, wall, cpu in row["rows"]:
        yield Line("ci-sweep", name, {"wall": Timing(wall, 0.0), "cpu": Timing(cpu, 0.0)})
    total = {"wall": Timing(row["wall"], 0.0), "cpu": Timing(row["cpu"], 0.0)}
    yield Line("ci-sweep", "all rows", total, figures={"objects": objects, "cores": row["cores"]})


def build_all(names: Sequence[str], most: int | None) -> dict[str, Any]:
    """Build at most `most` attrs of each row with one process per core; return seconds."""
    cores = min(CORES, cpu_count())
    started = perf_counter()
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(build, names, itertools.repeat(most), chunksize=1))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    return {"rows": rows, "wall": perf_counter() - started, "cpu": cpu, "cores": cores}


def build(name: str, most: int | None) -> tuple[str, float, float]:
    """Build every implementation of the rows' "ci" attrs; return wall-clock and processor seconds."""
    wall, cpu = perf_counter(), process_time()
    for case in [case for case in row(name).sweep() if "ci" in case.tags][:most]:
        get_all_candidates(case.attr)
    return name, perf_counter() - wall, process_time() - cpu
