"""``jitkernels bench everyday``: small functions, compiled and interpreted; no compiled one may be slower."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.small_cases import CASES
from jitkernels.benchmarks.small_functions import LOOPS, STRAIGHT
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import measure

SIZES, TYPES = (1, 3, 20, 100, 1000), ("float64", "float32")
JIT, PLAIN_FUNCTION = "jit", "plain"
NOISE_FACTOR, PROMISED_EVERYDAY_SECONDS = 1.1, 2e-7
"""Noise limits, relative and absolute: a function is slower if it exceeds both."""
CALLS_PER_MEASUREMENT = 50
"""Calls per measurement: reading the clock takes as long as the shortest call."""


def _functions() -> dict[str, Callable[..., Any]]:
    return {**STRAIGHT, **{function.__name__: function for function in LOOPS}}


def _names() -> Collection[str]:
    return [*_functions(), *(name for name, _, _ in CASES)]


def _arguments(name: str, settings: Settings) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Return the arguments of a function and their labels."""
    for candidate, _, arguments in CASES:
        if candidate == name:
            yield "its own", arguments
    numbers = np.random.default_rng(1)
    if name in _functions():
        for size in SIZES if settings.tag == "full" else SIZES[2:3]:
            for dtype in TYPES if settings.tag == "full" else TYPES[:1]:
                yield f"{size} of {dtype}", (numbers.random(size).astype(dtype),)
        yield "20 of 40", (numbers.random(40)[::2],)


def is_behind(line: Line) -> bool:
    """Return whether the interpreted function is faster beyond noise."""
    ours, plain = (line.timings[name].seconds / CALLS_PER_MEASUREMENT for name in (JIT, PLAIN_FUNCTION))
    return ours > NOISE_FACTOR * plain and ours > plain + PROMISED_EVERYDAY_SECONDS


def verdict(lines: Sequence[Line]) -> Verdict:
    """Report whether any compiled function is slower."""
    behind = [f"{line.group}, {line.case}" for line in lines if is_behind(line)]
    mean = geometric_mean([line.timings[PLAIN_FUNCTION].seconds / line.timings[JIT].seconds for line in lines])
    text = f"{len(lines)} cases, {mean:.2f} times the interpreted functions; slower: {', '.join(behind) or 'none'}"
    return Verdict(text, not behind)


def _repeated(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    for _ in range(CALLS_PER_MEASUREMENT):
        function(*arguments)


@benchmark("everyday", verdict=verdict, against=PLAIN_FUNCTION, parts=_names)
def everyday(settings: Settings) -> Iterator[Line]:
    """Some 110 functions of a few lines, of arrays of 1 to 1,000 elements: 50 calls, compiled and interpreted."""
    jit, clock = jk.jit, thread_time if settings.threads == 1 else perf_counter
    functions = _functions() | {name: function for name, function, _ in CASES}
    for name in settings.some_of(_names()):
        function, compiled = functions[name], jit(functions[name])
        for case, arguments in _arguments(name, settings):
            with np.errstate(all="ignore"):
                try:
                    function(*arguments)
                except (ValueError, IndexError):  # as NumPy does for arrays of one element
                    continue
                calls = {
                    JIT: partial(_repeated, compiled, arguments),
                    PLAIN_FUNCTION: partial(_repeated, function, arguments),
                }
                for _ in range(3):
                    compiled(*arguments)
                timings = measure(calls, budget=settings.seconds / 4, rounds=(5, 40), clock=clock)
                line = Line(name, case, timings, JIT)
                if is_behind(line):  # measure again before reporting it
                    timings = measure(calls, budget=settings.seconds, rounds=(9, 80), clock=clock)
                    line = Line(name, case, timings, JIT)
            yield line
