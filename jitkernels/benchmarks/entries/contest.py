"""``jitkernels bench --contest``: four tasks done by NumPy and by compilers, each in a process of its own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean
from jitkernels.contest.rounds import Result, contest
from jitkernels.contest.task import Task, all_tasks
from jitkernels.tuning.timer import Timing

NAME, OURS = "contest", "jitkernels"
FIRST, ERROR, MEMORY = "first call", "error", "memory"
"""What stands in a table of its own beside the times, each named after its task and this."""
FEW = 3
"""Sizes of each task that "ci" looks at."""


def verdict(lines: Sequence[Line]) -> Verdict:
    steady = [line for line in lines if "," not in line.group]
    others = sorted({name for line in steady for name in line.timings} - {OURS})
    means = {
        name: geometric_mean([ratio for line in steady if (ratio := line.speed_over(name)) is not None])
        for name in others
    }
    words = ", ".join(f"{name} {mean:.2f}" for name, mean in means.items())
    missing = dict.fromkeys(part for line in lines for part in line.detail.split("; ") if part)
    return Verdict("\n".join([f"speed over others, geometric means: {words}", *missing]))


@benchmark(NAME, verdict=verdict, against="numpy", parts=lambda: tuple(all_tasks()))
def run(settings: Settings) -> Iterator[Line]:
    """Monte Carlo pi, bodies, the Mandelbrot set and options by NumPy, Numba, JAX, torch, TensorFlow, Triton and us."""
    tasks = all_tasks()
    for name in settings.parts or tasks:
        task = tasks[name]
        sizes = task.sizes if settings.tag == "full" else task.sizes[:FEW]
        yield from lines_of(task, list(contest(task, sizes, settings.threads, settings.seconds)))


def lines_of(
    task: Task, found: Sequence[tuple[int, Mapping[str, Result], Mapping[str, str]]]
) -> Iterator[Line]:
    """Four tables: later calls, first calls, errors and memory, by size."""

    def line(
        group: str, size: int, timings: Mapping[str, Timing], figures: Mapping[str, float], said: str
    ) -> Line:
        pick = OURS if OURS in timings else ""
        return Line(group, str(size), timings, pick, figures=figures, detail=said)

    for size, results, missing in found:
        times = {name: Timing(one.seconds, one.spread) for name, one in results.items()}
        yield line(task.name, size, times, {}, "; ".join(f"{name}: {why}" for name, why in missing.items()))
    for size, results, _ in found:
        first = {name: Timing(one.first, 0.0) for name, one in results.items()}
        yield line(f"{task.name}, {FIRST}", size, first, {}, "")
    for part, figure in ((ERROR, "error"), (MEMORY, "bytes")):
        for size, results, _ in found:
            values: dict[str, Any] = {name: getattr(one, figure) for name, one in results.items()}
            yield line(f"{task.name}, {part}", size, {}, values, "")
