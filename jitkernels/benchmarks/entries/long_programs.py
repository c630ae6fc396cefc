"""``jitkernels bench long-programs``: compile time and memory of long generated programs.

No operation amplifies the distance of nearby values, so that results can be compared with NumPy's.
"""

import resource
import sys
from collections.abc import Callable, Iterator, Sequence
from random import Random
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

PROGRAMS = {"chain": 1000, "program": 10_000}
"""Operations of each kind."""
LIMITS = {"chain": 3.0, "program": 30.0}
MAX_PROGRAM_BYTES = 1e9
RECENT_VALUES, MEAN_EVERY = 16, 100
"""A step uses the last value and an input or one of the RECENT_VALUES values before; every MEAN_EVERY-th is a mean."""


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for line in lines:
        seconds, memory = line.timings["first call"].seconds, line.figures["bytes"]
        limit = LIMITS[line.group]
        words.append(
            f"{line.group} of {line.case}: {seconds:.2f} s (promised: {limit:.0f} s), {memory / 1e6:.0f} MB "
            f"(promised: {MAX_PROGRAM_BYTES / 1e6:.0f} MB)"
        )
        holds = holds and seconds <= limit and memory <= MAX_PROGRAM_BYTES
    return Verdict("; ".join(words), holds)


@benchmark("long-programs", verdict=verdict)
def long_programs(settings: Settings) -> Iterator[Line]:
    """A chain of 1,000 operations and a program of 10,000: the first call, later ones, NumPy, memory of the process."""
    for kind, most in PROGRAMS.items():
        operations = 10 if settings.is_tiny else most
        with empty_cache() as cache:
            measurements = run(__name__, "child", kind, operations, cache=cache)
        timings = {name: Timing(measurements[name], 0.0) for name in ("first call", "later call", "numpy")}
        yield Line(kind, f"{operations} operations", timings, figures={"bytes": measurements["bytes"]})


def child(kind: str, operations: int) -> dict[str, float]:
    """Return seconds of the first call, of a later one and of NumPy, and the peak memory of the process."""
    function = {"chain": chain, "program": program}[kind](operations)
    arrays = [np.random.default_rng(seed).uniform(-1, 1, 1000) for seed in range(2)]
    compiled = jk.jit(function)
    first, result = _timed(compiled, arrays)
    later, _ = _timed(compiled, arrays)
    numpy, right = _timed(function, arrays)
    np.testing.assert_allclose(result, right, rtol=1e-9, atol=1e-9)
    unit = 1 if sys.platform == "darwin" else 1024
    memory = float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return {"first call": first, "later call": later, "numpy": numpy, "bytes": memory}


def _timed(function: Callable[..., Any], arrays: Sequence[Any]) -> tuple[float, Any]:
    started = perf_counter()
    result = function(*arrays)
    return perf_counter() - started, result


def chain(operations: int) -> Callable[..., Any]:
    """Return a chain of operations, each on the previous result."""

    def compute(x: Any, y: Any) -> Any:
        for number in range(operations):
            match number % 4:
                case 0:
                    x = x * 0.5
                case 1:
                    x = x + y
                case 2:
                    x = np.minimum(x, 1.5)
                case 3:
                    x = np.cos(x)
        return x

    return compute


def program(operations: int) -> Callable[..., Any]:
    """Return a program of operations on random recent values; every value is used.

    Each step draws from a generator of its own: a compiler may trace a step more than once.
    """

    def compute(x: Any, y: Any) -> Any:
        values, done = [x, y], 0
        while done < operations:
            random = Random(len(values))
            last, other = values[-1], random.choice((x, y, *values[-RECENT_VALUES:]))
            if len(values) % MEAN_EVERY == 0:
                found, count = last.mean() * 0.5 + other * 0.5, 4
            else:
                found, count = random.choice(_STEPS)(last, other)
            values.append(found)
            done += count
        return values[-1]

    return compute


_STEPS: tuple[Callable[[Any, Any], tuple[Any, int]], ...] = (
    lambda a, b: ((a + b) * 0.5, 2),
    lambda a, b: (a * 0.75 + b * 0.25, 3),
    lambda a, b: (np.maximum(a, b), 1),
    lambda a, b: (np.minimum(a, -b), 2),
    lambda a, b: (np.cos((a + b) * 0.5), 3),
    lambda a, b: (np.sin(a * 0.5 - b * 0.5), 4),
)
