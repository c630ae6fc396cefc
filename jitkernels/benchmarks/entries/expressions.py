"""``jitkernels bench expressions``: ordinary NumPy functions in jitkernels and in other compilers, in one table.

Every program runs in its own process for each number of threads, pinned to as many cores: that binds all
contestants equally, and none of them shares another's threads or settings. Each result is compared with NumPy's
before anything is timed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jitkernels.benchmarks.contests import NUMPY, OURS, contests
from jitkernels.benchmarks.processes import run
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing

BEST = "the best peer"
SHORT = ("linear", "black_scholes", "softmax", "fdtd_step", "box_blur", "forces_of_bodies")
SIZES = {TINY_TAG: (8,), "ci": (8, 1000, 100_000), "full": (8, 64, 512, 4096, 32_768, 262_144, 2_000_000, 10_000_000)}
DTYPES = {TINY_TAG: ("float32",), "ci": ("float32",), "full": ("float32", "float64")}
PROMISED = {NUMPY: 3.0, BEST: 1.3}
REPORTED_RATIO = 0.9
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "JITKERNELS")


def verdict(lines: Sequence[Line]) -> Verdict:
    others = sorted({name for line in lines for name in line.timings} - {OURS, NUMPY})
    failed = [f"{_named(line)}: {line.detail}" for line in lines if line.detail.startswith(OURS)]
    means = {name: _mean(lines, OURS, name) for name in (NUMPY, *others)}
    means |= {BEST: _mean(lines, OURS, BEST)} if others else {}
    behind = sorted(
        (ratio, f"{_named(line)} ({_best(line)})")
        for line in lines
        if (ratio := _ratio(line, OURS, BEST) or 1.0) < REPORTED_RATIO
    )
    words = (
        f"{name} {mean:.2f}" + (f" (promised: {PROMISED[name]})" if name in PROMISED else "")
        for name, mean in means.items()
    )
    text = [f"{len(lines)} cases, geometric means of the speed over {', '.join(words)}"]
    text += [
        f"{len(behind)} cases below {REPORTED_RATIO} of {BEST}:"
        if behind
        else f"no case below {REPORTED_RATIO} of {BEST}"
    ]
    text += [f"  {ratio:.2f} {name}" for ratio, name in behind]
    text += [f"  failed: {name}" for name in failed]
    holds = not failed and all(mean >= PROMISED.get(name, 1.0) for name, mean in means.items())
    return Verdict("\n".join(text), holds)


def _named(line: Line) -> str:
    return f"{line.group}, {line.case}"


def _best(line: Line) -> str:
    """Return the fastest contestant other than jitkernels and NumPy, or None."""
    others = [name for name in line.timings if name not in (OURS, NUMPY)]
    return min(others, key=lambda name: line.timings[name].seconds, default="")


def _seconds(line: Line, name: str) -> float | None:
    name = _best(line) if name == BEST else name
    return line.timings[name].seconds if name in line.timings else None


def _ratio(line: Line, name: str, against: str) -> float | None:
    """Return the speedup of one contestant over another, if both have times."""
    seconds, baseline = _seconds(line, name), _seconds(line, against)
    return None if seconds is None or baseline is None else baseline / seconds


def _mean(lines: Sequence[Line], name: str, against: str) -> float:
    return geometric_mean([ratio for line in lines if (ratio := _ratio(line, name, against)) is not None])


@benchmark("expressions", verdict=verdict, against=NUMPY, parts=all_programs)
def expressions(settings: Settings) -> Iterator[Line]:
    """Programs through jitkernels.jit, NumPy and every other compiler that is installed, one thread and all."""
    names = settings.some_of(all_programs() if settings.tag == "full" else SHORT)
    for name in names:
        for threads in settings.limited(sorted({1, settings.threads})):
            limits: dict[str, Any] = {f"{library}_NUM_THREADS": str(threads) for library in THREADS}
            sizes, dtypes = SIZES[settings.tag], DTYPES[settings.tag]
            for measurement in run(__name__, "child", name, threads, sizes, dtypes, settings.seconds, **limits):
                yield _line(name, threads, **measurement)


def _line(
    name: str, threads: int, dtype: str, elements: int, times: Mapping[str, Sequence[Any]], remarks: Sequence[str]
) -> Line:
    timings = {contestant: Timing(*values) for contestant, values in times.items()}
    group = f"{name}, {dtype}, {threads} thread{'s'[: threads > 1]}"
    line = Line(group, f"{elements} elements", timings, OURS, detail="; ".join(remarks))
    ratio = _ratio(line, OURS, BEST)
    return line if ratio is None else Line(**{**vars(line), "figures": {f"x {BEST}": round(ratio, 2)}})


def child(name: str, threads: int, sizes: Sequence[int], dtypes: Sequence[str], seconds: float) -> list[dict[str, Any]]:
    """Return the measurements for `_line`, for each dtype and size."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    return contests(all_programs()[name], threads, sizes, dtypes, seconds)
