"""One program against itself: as NumPy runs it, as we compile it, and as others do.

Whoever gives another answer than NumPy is not timed, and that is said.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.compilers import compilers, copied
from jitkernels.benchmark.programs.program import Program, results
from jitkernels.benchmark.table import time_calls
from jitkernels.peers import Bound
from jitkernels.tuning.timer import Timing

OURS, NUMPY = "jitkernels", "numpy"
NUMBERED = " #"
"""Between the name of a contestant and the number of its call, in names of calls."""
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Of the largest result: what sums of 10^7 numbers, one after the other, may come to."""
TIES = 1e-4
"""Share of results that are no floats and may differ, where a rounding decides."""


def contests(
    program: Program, threads: int, sizes: Sequence[int], dtypes: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """Times and spreads of every contestant whose answer is NumPy's, and what is wrong with the others."""
    jit = getattr(jk, "jit", None)
    compiled = jit(program.function) if jit else None
    found = []
    with np.errstate(all="ignore"):
        for dtype in dtypes:
            for elements in sizes:
                calls, remarks = _contestants(program, compiled, program.arguments(elements, dtype), threads)
                timings = _fastest_of_each(time_calls(calls, seconds=seconds))
                times = {
                    one: (timing.seconds, timing.spread, timing.threaded) for one, timing in timings.items()
                }
                found.append({"dtype": dtype, "elements": elements, "times": times, "remarks": remarks})
    return found


def _fastest_of_each(timings: Mapping[str, Timing]) -> dict[str, Timing]:
    """Of the calls of each contestant the fastest, under its name."""
    found: dict[str, Timing] = {}
    for label, timing in timings.items():
        name = label.partition(NUMBERED)[0]
        found[name] = min(found.get(name, timing), timing, key=lambda one: one.seconds)
    return found


def _contestants(
    program: Program, compiled: Any, arguments: tuple[Any, ...], threads: int
) -> tuple[dict[str, Bound], list[str]]:
    """The calls to be timed, each with arguments of its own, and remarks about those that are not."""
    right = results(program.function, copied(arguments))
    calls: dict[str, Bound] = {NUMPY: partial(program.function, *copied(arguments))}
    makers: dict[str, Any] = {OURS: lambda *_: [partial(compiled, *copied(arguments))]} if compiled else {}
    remarks = []
    for name, maker in {**makers, **compilers()}.items():
        try:
            made = maker(program, copied(arguments), threads)
            wrong = next(filter(None, (difference(call, right, exact=name == OURS) for call in made)), "")
        except Exception as error:  # noqa: BLE001  # others' compilers fail in ways of their own; it is said
            wrong = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:100]}"
        if wrong:
            remarks.append(f"{name}: {wrong}")
        else:
            calls |= {f"{name}{NUMBERED}{number}": call for number, call in enumerate(made)}
    return calls, remarks


def difference(call: Bound, right: tuple[Any, ...], *, exact: bool) -> str:
    """What is wrong with an answer, or nothing; dtypes have to be NumPy's where it is `exact`."""
    got = results(call.func, copied(call.args))
    if len(got) != len(right):
        return f"{len(got)} results instead of {len(right)}"
    for number, (one, expected) in enumerate(zip(map(np.asarray, got), map(np.asarray, right), strict=True)):
        if one.shape != expected.shape or (exact and one.dtype != expected.dtype):
            return f"result {number} is {one.dtype}{one.shape} instead of {expected.dtype}{expected.shape}"
        if expected.dtype.kind != "f":
            off, limit = float(np.mean(one != expected)) if one.size else 0.0, TIES
        else:
            scale = float(np.abs(expected).max(initial=0.0)) or 1.0
            off = float(np.abs(one - expected).max(initial=0.0)) / scale
            limit = TOLERANCE[expected.dtype.name]
        if not off <= limit:
            return f"result {number} is off by {off:.1e}"
    return ""
