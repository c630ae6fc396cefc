"""``jitkernels bench everyday``: small functions, compiled and plain, of which no compiled one may be the slower."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.small_cases import CASES
from jitkernels.benchmark.small_functions import LOOPS, STRAIGHT
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean
from jitkernels.tuning.timer import measure

SIZES, TYPES = (1, 3, 20, 100, 1000), ("float64", "float32")
OURS, PLAIN = "jit", "plain"
NOISE, SECONDS = 1.1, 2e-7
"""How much slower than the plain function is no more than noise: both must be passed."""
CALLS = 50
"""Calls that are timed at once: the clock takes as long as the shortest of them."""


def _functions() -> dict[str, Callable[..., Any]]:
    return {**STRAIGHT, **{one.__name__: one for one in LOOPS}}


def _names() -> Collection[str]:
    return [*_functions(), *(name for name, _, _ in CASES)]


def _arguments(name: str, settings: Settings) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """What a function is timed with, and what that is called."""
    for one, _, given in CASES:
        if one == name:
            yield "its own", given
    numbers = np.random.default_rng(1)
    if name in _functions():
        for size in SIZES[2:3] if settings.tag == "ci" else SIZES:
            for dtype in TYPES[:1] if settings.tag == "ci" else TYPES:
                yield f"{size} of {dtype}", (numbers.random(size).astype(dtype),)
        yield "20 of 40", (numbers.random(40)[::2],)


def is_behind(line: Line) -> bool:
    """Whether the plain function is faster by more than noise."""
    ours, plain = (line.timings[name].seconds / CALLS for name in (OURS, PLAIN))
    return ours > NOISE * plain and ours > plain + SECONDS


def verdict(lines: Sequence[Line]) -> Verdict:
    """None may be behind."""
    behind = [f"{line.group}, {line.case}" for line in lines if is_behind(line)]
    mean = geometric_mean([line.timings[PLAIN].seconds / line.timings[OURS].seconds for line in lines])
    text = f"{len(lines)} cases, {mean:.2f} times the plain functions; slower: {', '.join(behind) or 'none'}"
    return Verdict(text, not behind)


def _repeated(function: Callable[..., Any], given: tuple[Any, ...]) -> None:
    for _ in range(CALLS):
        function(*given)


@benchmark("everyday", verdict=verdict, against=PLAIN, parts=_names)
def everyday(settings: Settings) -> Iterator[Line]:
    """Some 110 functions of a few lines, of arrays of 1 to 1,000 elements: 50 calls, compiled and plain."""
    jit, clock = own_compiler(), thread_time if settings.threads == 1 else perf_counter
    functions = _functions() | {name: function for name, function, _ in CASES}
    for name in settings.parts or _names():
        function, compiled = functions[name], jit(functions[name])
        for case, given in _arguments(name, settings):
            with np.errstate(all="ignore"):
                try:
                    function(*given)
                except (ValueError, IndexError):  # as NumPy has it for arrays of one element
                    continue
                calls = {
                    OURS: partial(_repeated, compiled, given),
                    PLAIN: partial(_repeated, function, given),
                }
                for _ in range(3):
                    compiled(*given)
                timings = measure(calls, (), budget=settings.seconds / 4, rounds=(5, 40), clock=clock)
                line = Line(name, case, timings, OURS)
                if is_behind(line):  # once more, before it is believed
                    timings = measure(calls, (), budget=settings.seconds, rounds=(9, 80), clock=clock)
                    line = Line(name, case, timings, OURS)
            yield line
