"""``jitkernels bench graph-breaks``: functions that break at one construct, beside Python, and what a break costs."""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.planted_breaks import CONSTRUCTS, SKELETONS, planted_module
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import measure

JIT, PYTHON, CONSTRUCT_ALONE = "jit", "python", "construct alone"
BREAKS = {"straight": 1, "loop": 3, "branch": 1}
"""Breaks of one call."""
PLANTED_SIZE, ITERATIONS = 8, BREAKS["loop"]
WARM_UP_CALLS = 30
"""Calls after which each part has been timed beside its statements in Python."""
MAX_SLOWDOWN, MAX_BREAK_MICROSECONDS = 1.02, 2.0
COST = "us per break"


def verdict(lines: Sequence[Line]) -> Verdict:
    """The speedup over Python, and the cost of a break: the call less its constructs, with all kernels.

    Where the time of a construct depends on its values (fractions, formatted numbers, roots), that is an upper bound.
    """
    ratios = {f"{line.group}, {line.case}": line.timings[PYTHON].seconds / line.timings[JIT].seconds for line in lines}
    least = min(ratios, key=lambda label: ratios[label])
    costs = [line.figures[COST] for line in lines]
    cheap, median = sum(cost <= MAX_BREAK_MICROSECONDS for cost in costs), float(np.median(costs))
    text = (
        f"{len(lines)} functions, {geometric_mean([*ratios.values()]):.2f} times as fast as Python, at least "
        f"{ratios[least]:.2f} ({least}; promised: {1 / MAX_SLOWDOWN:.2f}); a break and the kernels around it take "
        f"{median:.2f} us in the median, at most {MAX_BREAK_MICROSECONDS:g} us in {cheap}"
    )
    return Verdict(text, ratios[least] >= 1 / MAX_SLOWDOWN and median <= MAX_BREAK_MICROSECONDS)


def _forget_effects(planted: ModuleType) -> None:
    planted.SINK.seek(0)
    planted.SINK.truncate()
    planted.SEEN.clear()


def _names() -> list[str]:
    return [*CONSTRUCTS]


@benchmark("graph-breaks", verdict=verdict, against=PYTHON, parts=_names)
def graph_breaks(settings: Settings) -> Iterator[Line]:
    """Functions with one construct that is left to Python, in a straight line, a loop and a branch, of 8 numbers."""
    x = np.linspace(0.5, 1.5, PLANTED_SIZE)
    with tempfile.TemporaryDirectory() as folder:
        planted = planted_module(Path(folder))
        for name in settings.some_of(_names()):
            alone: Any = getattr(planted, f"alone_{name}")
            for kind in SKELETONS:
                plain: Any = getattr(planted, f"{kind}_{name}")
                compiled = jk.jit(plain)
                for _ in range(WARM_UP_CALLS):
                    compiled(x, ITERATIONS)
                calls = {
                    label: partial(function, x, ITERATIONS)
                    for label, function in ((JIT, compiled), (PYTHON, plain), (CONSTRUCT_ALONE, alone))
                }
                timings = measure(calls, budget=settings.seconds)
                _forget_effects(planted)
                cost = (timings[JIT].seconds - BREAKS[kind] * timings[CONSTRUCT_ALONE].seconds) / BREAKS[kind]
                yield Line(name, kind, timings, JIT, figures={COST: round(cost * 1e6, 2)})
