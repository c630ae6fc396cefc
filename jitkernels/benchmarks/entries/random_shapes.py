"""``jitkernels bench random-shapes``: one compiled function, called with a thousand shapes.

Shapes with unit extents broadcast differently and may be compiled separately; no others may.
"""

from collections.abc import Iterator, Sequence
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

SHAPES = {TINY_TAG: 5, "ci": 1000, "full": 20_000}
LONGEST = {TINY_TAG: 8, "ci": 48, "full": 160}
MAX_COMPILES, PROMISED_SHAPE_SECONDS = 4, 2e-6
SHAPE_PROCESSES = 3
"""A shape is new once per process: time is the minimum over this many processes, compiles the maximum."""


def verdict(lines: Sequence[Line]) -> Verdict:
    (line,) = lines
    new, compiles = line.timings["new shape"].seconds, int(line.figures["compiles"])
    return Verdict(
        f"{line.case}: {compiles} compiles (promised: at most {MAX_COMPILES}), {new * 1e6:.2f} us for each of the "
        f"rest (promised: {PROMISED_SHAPE_SECONDS * 1e6:.0f} us)",
        compiles <= MAX_COMPILES and new <= PROMISED_SHAPE_SECONDS,
    )


@benchmark("random-shapes", verdict=verdict)
def random_shapes(settings: Settings) -> Iterator[Line]:
    """1,000 random shapes (tag full: 20,000) of one compiled function: compiles, and the time of all other calls."""
    runs = []
    for _ in settings.limited(range(SHAPE_PROCESSES)):
        with empty_cache() as cache:
            runs.append(run(__name__, "child", SHAPES[settings.tag], LONGEST[settings.tag], cache=cache))
    timings = {
        "new shape": Timing(min(measurement["new"] for measurement in runs), 0.0),
        "same again": Timing(min(measurement["again"] for measurement in runs), 0.0),
    }
    compiles = max(measurement["compiles"] for measurement in runs)
    yield Line("random-shapes", f"{SHAPES[settings.tag]} shapes", timings, figures={"compiles": compiles})


def child(count: int, longest: int) -> dict[str, float]:
    """Return compile counts, and seconds per call of new shapes without compilation, and of a repetition."""
    every = [(rows, columns) for rows in range(1, longest + 1) for columns in range(1, longest + 1)]
    shapes = Random(1).sample(every, count)
    room = [np.linspace(-1, 1, longest * longest, dtype=np.float32) for _ in range(3)]

    def arguments(rows: int, columns: int) -> tuple[Any, ...]:
        first, second, line = room
        return (
            first[: rows * columns].reshape(rows, columns),
            second[: rows * columns].reshape(rows, columns),
            line[:columns],
        )

    function = jk.jit(_scaled)
    clock = perf_counter()
    read = perf_counter() - clock
    new, uncompiled, compiles = 0.0, 0, 0
    for shape in shapes:
        inputs = arguments(*shape)
        started = perf_counter()
        result = function(*inputs)
        seconds = perf_counter() - started
        now = function.stats().compiles
        if now == compiles:
            new, uncompiled = new + seconds - read, uncompiled + 1
        compiles = now
        np.testing.assert_allclose(result, _scaled(*inputs), rtol=1e-5, atol=1e-6)
    calls = [arguments(*shape) for shape in shapes]
    again = min(_seconds(function, calls) for _ in range(5))
    return {"new": new / max(uncompiled, 1), "again": again / count, "compiles": compiles}


def _scaled(a: Any, b: Any, c: Any) -> Any:
    return (a * b + c) * 0.5


def _seconds(function: Any, calls: Sequence[tuple[Any, ...]]) -> float:
    started = perf_counter()
    for arguments in calls:
        function(*arguments)
    return perf_counter() - started
