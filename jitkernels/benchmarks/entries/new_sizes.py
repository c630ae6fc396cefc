"""``jitkernels bench new-sizes``: overhead of a call with a new size over one with a known size.

Measured once in size classes that are already in the dispatch table, and once in a process with an empty table: random
two-dimensional shapes then cover more than a hundred classes for each function. Each runs in its own process, to
observe its memory. ``JITKERNELS_TUNE=replay`` excludes measurements by the tuner, whose cost `tuning-time` shows.
"""

import gc
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

SIZES = {TINY_TAG: 20, "ci": 2000, "full": 20000}
"""The limit holds for the latter: a tenth of the sizes cover nearly as many classes."""
FIRST_SIZE, CHUNK = 65, 500
PROMISED_SIZE_SECONDS, PROMISED_BYTES = 1e-6, 2e6
SIZE_PROCESSES = 3
"""A size is new once per process: time is the minimum over this many processes, memory the maximum."""
LONGEST, MAX_SIZE_ELEMENTS = 4096, 1 << 14
"""Of random shapes."""
FIRST_SHAPES = ((3, 5), (3, 3000))
"""First calls with short and with long rows, which load the objects."""


def verdict(lines: Sequence[Line]) -> Verdict:
    above = {f"{line.group}, {line.case}": line.timings["above"].seconds for line in lines}
    grown: dict[str, float] = {}
    for line in lines:
        grown[line.case] = grown.get(line.case, 0.0) + line.figures["bytes"]
    worst, most = max(above, key=lambda name: above[name]), max(grown.values())
    return Verdict(
        f"a new size costs at most {above[worst] * 1e6:.2f} us above a warm call ({worst}; promised: "
        f"{PROMISED_SIZE_SECONDS * 1e6:.0f} us), and {most / 1e6:.1f} MB in all "
        f"(promised: {PROMISED_BYTES / 1e6:.0f} MB)",
        above[worst] <= PROMISED_SIZE_SECONDS and most <= PROMISED_BYTES,
    )


@benchmark("new-sizes", verdict=verdict)
def new_sizes(settings: Settings) -> Iterator[Line]:
    """2,000 sizes (tag full: 20,000) never seen before through vmul, softmax and layer_norm."""
    count = SIZES[settings.tag]
    with empty_cache() as cache:
        for part, label in (("of_known_classes", "known classes"), ("of_any_class", "classes met cold")):
            runs = [
                run(__name__, part, count, cache=cache, JITKERNELS_TUNE="replay")
                for _ in settings.limited(range(SIZE_PROCESSES))
            ]
            for name in runs[0]:
                figures = min((run_figures[name] for run_figures in runs), key=lambda figures: figures["above"])
                timings = {key: Timing(figures[key], 0.0) for key in ("new", "warm", "above")}
                grown = max(run_figures[name]["bytes"] for run_figures in runs)
                yield Line(name, f"{count} sizes, {label}", timings, figures={"bytes": grown})


def _arguments(elements: int) -> dict[str, Callable[[int, int], tuple[Any, ...]]]:
    x, y, scale, bias, out = (np.ones(elements, np.float32) for _ in range(5))

    def of(array: Any, rows: int, n: int) -> Any:
        return array[: rows * n].reshape(rows, n)

    return {
        "vmul": lambda rows, n: (of(x, rows, n), of(y, rows, n), of(out, rows, n)),
        "softmax": lambda rows, n: (of(x, rows, n), -1, of(out, rows, n)),
        "layer_norm": lambda rows, n: (of(x, rows, n), scale[:n], bias[:n], 1e-5, False, -1, of(out, rows, n)),
    }


def of_known_classes(sizes: int) -> dict[str, dict[str, float]]:
    """Return times per call of new sizes and of a repeated size, and the growth of the process."""
    measurements = {}
    last = FIRST_SIZE + sizes
    for name, arguments in _arguments(4 * (last + 1)).items():
        function = getattr(jk, name)
        seen = {FIRST_SIZE - 1, last, *(1 << i for i in range(last.bit_length())), *range(FIRST_SIZE, last, 97)}
        for n in sorted(size for size in seen if 0 < size <= last):
            function(*arguments(4, n))  # build each size class beforehand
        new = [n for n in range(FIRST_SIZE, last) if n not in seen]
        times = {"new": 0.0, "warm": 0.0}
        _pass(function, [arguments(4, 64)] * CHUNK)
        gc.collect()
        before = _resident()
        for start in range(0, len(new), CHUNK):
            calls = [arguments(4, n) for n in new[start : start + CHUNK]]
            times["new"] += _pass(function, calls)
            same = [calls[len(calls) // 2]] * len(calls)
            times["warm"] += min(_pass(function, same) for _ in range(3))
        del calls, same
        gc.collect()
        measurements[name] = _figures(times["new"] / len(new), times["warm"] / len(new), _resident() - before)
    return measurements


def of_any_class(sizes: int) -> dict[str, dict[str, float]]:
    """Return the same for random shapes of new size classes, and for a repetition of these shapes."""
    measurements = {}
    shapes = _random_shapes(sizes)
    for name, arguments in _arguments(MAX_SIZE_ELEMENTS).items():
        function = getattr(jk, name)
        _pass(function, [arguments(*shape) for shape in FIRST_SHAPES] * CHUNK)
        calls = [arguments(*shape) for shape in shapes]
        gc.collect()
        before = _resident()
        new = _pass(function, calls)
        gc.collect()
        grown = _resident() - before
        warm = min(_pass(function, calls) for _ in range(5))
        measurements[name] = _figures(new / sizes, warm / sizes, grown)
    return measurements


def _random_shapes(count: int) -> list[tuple[int, int]]:
    """Return `count` different shapes, extents of every order of magnitude, in random order."""
    generator = random.Random(1)
    distinct: dict[tuple[int, int], None] = {}
    while len(distinct) < count:
        rows, n = (int(LONGEST ** generator.random()) for _ in range(2))
        if rows * n <= MAX_SIZE_ELEMENTS:
            distinct[rows, n] = None
    shapes = list(distinct)
    generator.shuffle(shapes)  # the commonest came first
    return shapes


def _figures(new: float, warm: float, grown: float) -> dict[str, float]:
    return {"new": new, "warm": warm, "above": max(new - warm, 0.0), "bytes": grown}


def _pass(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> float:
    """Return processor seconds of calls, which excludes other programs; the difference of two passes is small."""
    started = thread_time()
    for arguments in calls:
        function(*arguments)
    return thread_time() - started


def _resident() -> float:
    """Return the resident bytes of this process; 0 if the system does not report them."""
    status = Path("/proc/self/statm")
    return float(int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")) if status.exists() else 0.0
