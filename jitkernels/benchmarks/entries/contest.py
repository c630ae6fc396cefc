"""``jitkernels bench --contest``: four tasks in NumPy and in compilers, each in its own process."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jitkernels.benchmarks.contest.rounds import Result, contest
from jitkernels.benchmarks.contest.task import Task, all_tasks
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing

CONTEST_NAME, OURS = "contest", "jitkernels"
FIRST_CALL, ERROR_FIGURE, MEMORY_FIGURE = "first call", "error", "memory"
"""Measurements besides later calls; each has a table of its own."""
CI_SIZES = 3
"""Number of sizes of each task under the tag "ci"."""


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


@benchmark(CONTEST_NAME, verdict=verdict, against="numpy", parts=lambda: tuple(all_tasks()))
def run(settings: Settings) -> Iterator[Line]:
    """Monte Carlo pi, n-body, Mandelbrot and options by NumPy, Numba, JAX, torch, TensorFlow, Triton and jitkernels."""
    tasks = all_tasks()
    for name in settings.some_of(tasks):
        task = tasks[name]
        sizes = task.sizes if settings.tag == "full" else tuple(settings.limited(task.sizes[:CI_SIZES]))
        yield from lines_of(task, list(contest(task, sizes, settings.threads, settings.seconds)))


def lines_of(task: Task, measurements: Sequence[tuple[int, Mapping[str, Result], Mapping[str, str]]]) -> Iterator[Line]:
    """Yield four tables by size: later calls, first calls, errors and memory."""

    def line(group: str, size: int, timings: Mapping[str, Timing], figures: Mapping[str, float], remark: str) -> Line:
        pick = OURS if OURS in timings else ""
        return Line(group, str(size), timings, pick, figures=figures, detail=remark)

    for size, results, missing in measurements:
        times = {name: Timing(result.seconds, result.spread) for name, result in results.items()}
        yield line(task.name, size, times, {}, "; ".join(f"{name}: {why}" for name, why in missing.items()))
    for size, results, _ in measurements:
        first = {name: Timing(result.first, 0.0) for name, result in results.items()}
        yield line(f"{task.name}, {FIRST_CALL}", size, first, {}, "")
    for part, figure in ((ERROR_FIGURE, "error"), (MEMORY_FIGURE, "bytes")):
        for size, results, _ in measurements:
            values: dict[str, Any] = {name: getattr(result, figure) for name, result in results.items()}
            yield line(f"{task.name}, {part}", size, {}, values, "")
