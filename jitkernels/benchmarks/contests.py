"""Time one program in NumPy, in jitkernels, and in other compilers.

A contestant whose result differs from NumPy's is reported instead of timed.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.compilers import compilers, copied
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.programs.benchmark_program import Program, results
from jitkernels.benchmarks.table import time_calls
from jitkernels.tuning.timer import Timing

OURS, NUMPY = "jitkernels", "numpy"
NUMBERED = " #"
"""Separates a contestant's name from the number of its call, in labels of calls."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Error relative to the largest result: the bound for sequential sums of 10^7 numbers."""
TIES = 1e-4
"""Share of non-float results that may differ, since rounding decides ties."""


def contests(
    program: Program, threads: int, sizes: Sequence[int], dtypes: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """Return times and spreads of every contestant whose result is NumPy's, and the errors of the others."""
    compiled = jk.jit(program.function)
    measurements = []
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            for elements in sizes:
                calls, remarks = _contestants(program, compiled, program.arguments(elements, dtype), threads)
                timings = _fastest_of_each(time_calls(calls, seconds=seconds))
                times = {name: (timing.seconds, timing.spread, timing.threaded) for name, timing in timings.items()}
                measurements.append({"dtype": dtype, "elements": elements, "times": times, "remarks": remarks})
    return measurements


def _fastest_of_each(timings: Mapping[str, Timing]) -> dict[str, Timing]:
    """Return the fastest call of each contestant, under its name."""
    fastest: dict[str, Timing] = {}
    for label, timing in timings.items():
        name = label.partition(NUMBERED)[0]
        fastest[name] = min(fastest.get(name, timing), timing, key=lambda candidate: candidate.seconds)
    return fastest


def _contestants(
    program: Program, compiled: Any, arguments: tuple[Any, ...], threads: int
) -> tuple[dict[str, Bound], list[str]]:
    """Return the calls to time, each with its own arguments, and remarks about contestants that are not timed."""
    right = results(program.function, copied(arguments))
    calls: dict[str, Bound] = {NUMPY: partial(program.function, *copied(arguments))}
    makers: dict[str, Any] = {OURS: lambda *_: [partial(compiled, *copied(arguments))]} if compiled else {}
    remarks = []
    for name, maker in {**makers, **compilers()}.items():
        try:
            variants = maker(program, copied(arguments), threads)
            wrong = next(filter(None, (difference(call, right, exact=name == OURS) for call in variants)), "")
        except Exception as error:  # noqa: BLE001  # compilers raise errors of many types; the remark has them
            wrong = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:100]}"
        if wrong:
            remarks.append(f"{name}: {wrong}")
        else:
            calls |= {f"{name}{NUMBERED}{number}": call for number, call in enumerate(variants)}
    return calls, remarks


def difference(call: Bound, right: tuple[Any, ...], *, exact: bool) -> str:
    """Return how a result differs, or ""; with `exact`, dtypes must equal NumPy's too."""
    got = results(call.func, copied(call.args))
    if len(got) != len(right):
        return f"{len(got)} results instead of {len(right)}"
    for number, (result, expected) in enumerate(zip(map(np.asarray, got), map(np.asarray, right), strict=True)):
        if result.shape != expected.shape or (exact and result.dtype != expected.dtype):
            return f"result {number} is {result.dtype}{result.shape} instead of {expected.dtype}{expected.shape}"
        if expected.dtype.kind != "f":
            off, limit = float(np.mean(result != expected)) if result.size else 0.0, TIES
        else:
            scale = float(np.abs(expected).max(initial=0.0)) or 1.0
            off = float(np.abs(result - expected).max(initial=0.0)) / scale
            limit = TOLERANCE[expected.dtype.name]
        if not off <= limit:
            return f"result {number} is off by {off:.1e}"
    return ""
