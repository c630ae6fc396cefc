"""``jitkernels bench ci-sweep``: cost of building every attr that CI tests, from an empty cache."""

import itertools
import multiprocessing
import resource
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from time import perf_counter, process_time
from typing import Any

from jitkernels.attrs.schema.registry import op_schema
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.core.cpu_target import cpu_count
from jitkernels.dispatch.kernel_cache import get_all_candidates
from jitkernels.tuning.timer import Timing

CORES = 2
PROMISED_SWEEP_SECONDS = 90.0
"""Promised seconds for all schemas on CORES cores."""
SLOWEST = 5
"""Number of schemas that the verdict names."""


def verdict(lines: Sequence[Line]) -> Verdict:
    *schemas, total = lines
    wall, cores = total.timings["wall"].seconds, int(total.figures["cores"])
    slowest = sorted(schemas, key=lambda line: line.timings["cpu"].seconds, reverse=True)[:SLOWEST]
    named = ", ".join(f"{line.case} {line.timings['cpu'].seconds:.1f}" for line in slowest)
    return Verdict(
        f"{len(schemas)} schemas, {total.figures['objects']:.0f} objects in {wall:.0f} s on {cores} cores "
        f"({total.timings['cpu'].seconds:.0f} s of processor time; "
        f"promised: {PROMISED_SWEEP_SECONDS:.0f} on {CORES}); most in {named}",
        wall <= PROMISED_SWEEP_SECONDS,
    )


@benchmark("ci-sweep", verdict=verdict)
def ci_sweep(settings: Settings) -> Iterator[Line]:
    """Building all implementations of every attr tagged "ci" from an empty cache, by a process on each core."""
    names = [schema.kernel_type.name.lower() for schema in settings.schemas]
    with empty_cache() as folder:
        measured = run(__name__, "build_all", names, 1 if settings.is_tiny else None, cache=folder)
        objects = sum(1 for path in folder.glob("*/objects/*") if path.suffix in (".o", ".so"))
    for name, wall, cpu in measured["schemas"]:
        yield Line("ci-sweep", name, {"wall": Timing(wall, 0.0), "cpu": Timing(cpu, 0.0)})
    total = {"wall": Timing(measured["wall"], 0.0), "cpu": Timing(measured["cpu"], 0.0)}
    yield Line("ci-sweep", "all schemas", total, figures={"objects": objects, "cores": measured["cores"]})


def build_all(names: Sequence[str], most: int | None) -> dict[str, Any]:
    """Build at most `most` attrs of each schema with one process per core; return seconds."""
    cores = min(CORES, cpu_count())
    started = perf_counter()
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        of_schemas = list(pool.map(build, names, itertools.repeat(most), chunksize=1))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    return {"schemas": of_schemas, "wall": perf_counter() - started, "cpu": cpu, "cores": cores}


def build(name: str, most: int | None) -> tuple[str, float, float]:
    """Build every implementation of the schemas' "ci" attrs; return wall-clock and processor seconds."""
    wall, cpu = perf_counter(), process_time()
    for case in [case for case in op_schema(name).sweep() if "ci" in case.tags][:most]:
        get_all_candidates(case.attr)
    return name, perf_counter() - wall, process_time() - cpu
