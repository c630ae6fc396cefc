"""``jitkernels bench expressions``: ordinary NumPy functions, compiled by us and by others, in one table.

Every program has a process of its own for each number of threads, which is kept on as many cores: that binds all
contestants alike, and none of them has another's threads or settings. Each answer is compared with NumPy's before
anything is timed.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.compilers import compilers, copied
from jitkernels.benchmark.processes import run
from jitkernels.benchmark.programs import all_programs
from jitkernels.benchmark.programs.program import Program, results
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean, time_calls
from jitkernels.peers import Bound
from jitkernels.tuning.timer import Timing

OURS, NUMPY, BEST = "jitkernels", "numpy", "the best peer"
SHORT = ("linear", "black_scholes", "softmax", "fdtd_step", "box_blur", "forces_of_bodies")
SIZES = {"ci": (8, 1000, 100_000), "full": (8, 64, 512, 4096, 32_768, 262_144, 2_000_000, 10_000_000)}
DTYPES = {"ci": ("float32",), "full": ("float32", "float64")}
PROMISED = {NUMPY: 3.0, BEST: 1.3}
BEHIND = 0.9
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}
"""Of the largest result: what sums of 10^7 numbers, one after the other, may come to."""
TIES = 1e-4
"""Share of results that are no floats and may differ, where a rounding decides."""
THREADS = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "JITKERNELS")


def verdict(lines: Sequence[Line]) -> Verdict:
    others = sorted({name for line in lines for name in line.timings} - {OURS, NUMPY})
    failed = [f"{_named(line)}: {line.detail}" for line in lines if line.detail.startswith(OURS)]
    if not any(OURS in line.timings for line in lines) and not failed:
        found = (f"{name} {_mean(lines, name, NUMPY):.2f}" for name in others)
        return Verdict(f"there is no jitkernels.jit; times NumPy's speed: {', '.join(found)}")
    means = {name: _mean(lines, OURS, name) for name in (NUMPY, *others)}
    means |= {BEST: _mean(lines, OURS, BEST)} if others else {}
    behind = sorted(
        (ratio, _named(line)) for line in lines if (ratio := _ratio(line, OURS, BEST) or 1.0) < BEHIND
    )
    words = (
        f"{name} {mean:.2f}" + (f" (promised: {PROMISED[name]})" if name in PROMISED else "")
        for name, mean in means.items()
    )
    text = [f"{len(lines)} cases, geometric means of the speed over {', '.join(words)}"]
    text += [
        f"{len(behind)} cases below {BEHIND} of {BEST}:" if behind else f"no case below {BEHIND} of {BEST}"
    ]
    text += [f"  {ratio:.2f} {name}" for ratio, name in behind]
    text += [f"  failed: {name}" for name in failed]
    holds = not failed and all(mean >= PROMISED.get(name, 1.0) for name, mean in means.items())
    return Verdict("\n".join(text), holds)


def _named(line: Line) -> str:
    return f"{line.group}, {line.case}"


def _seconds(line: Line, name: str) -> float | None:
    """Of a contestant, or of the fastest of those that are neither we nor NumPy."""
    if name != BEST:
        return line.timings[name].seconds if name in line.timings else None
    found = [timing.seconds for other, timing in line.timings.items() if other not in (OURS, NUMPY)]
    return min(found, default=None)


def _ratio(line: Line, name: str, against: str) -> float | None:
    """How many times faster one contestant is than another, if both are there."""
    one, other = _seconds(line, name), _seconds(line, against)
    return None if one is None or other is None else other / one


def _mean(lines: Sequence[Line], name: str, against: str) -> float:
    return geometric_mean([ratio for line in lines if (ratio := _ratio(line, name, against)) is not None])


@benchmark("expressions", verdict=verdict, against=NUMPY)
def expressions(settings: Settings) -> Iterator[Line]:
    """Programs through jitkernels.jit, NumPy and every other compiler that is installed, one thread and all."""
    names = list(all_programs()) if settings.tag == "full" else SHORT
    for name in names:
        for threads in sorted({1, settings.threads}):
            limits: dict[str, Any] = {f"{library}_NUM_THREADS": str(threads) for library in THREADS}
            sizes, dtypes = SIZES[settings.tag], DTYPES[settings.tag]
            for found in run(__name__, "child", name, threads, sizes, dtypes, settings.seconds, **limits):
                yield _line(name, threads, **found)


def _line(
    name: str,
    threads: int,
    dtype: str,
    elements: int,
    times: Mapping[str, Sequence[Any]],
    remarks: Sequence[str],
) -> Line:
    timings = {contestant: Timing(*values) for contestant, values in times.items()}
    group = f"{name}, {dtype}, {threads} thread{'s'[: threads > 1]}"
    line = Line(group, f"{elements} elements", timings, OURS, detail="; ".join(remarks))
    ratio = _ratio(line, OURS, BEST)
    return line if ratio is None else Line(**{**vars(line), "figures": {f"x {BEST}": round(ratio, 2)}})


def child(
    name: str, threads: int, sizes: Sequence[int], dtypes: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """What `_line` takes, for each dtype and size."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    return contests(all_programs()[name], threads, sizes, dtypes, seconds)


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
                timings = time_calls(calls, seconds=seconds)
                times = {
                    one: (timing.seconds, timing.spread, timing.threaded) for one, timing in timings.items()
                }
                found.append({"dtype": dtype, "elements": elements, "times": times, "remarks": remarks})
    return found


def _contestants(
    program: Program, compiled: Any, arguments: tuple[Any, ...], threads: int
) -> tuple[dict[str, Bound], list[str]]:
    """The calls to be timed, each with arguments of its own, and remarks about those that are not."""
    right = results(program.function, copied(arguments))
    calls: dict[str, Bound] = {NUMPY: partial(program.function, *copied(arguments))}
    makers: dict[str, Any] = {OURS: lambda *_: partial(compiled, *copied(arguments))} if compiled else {}
    remarks = []
    for name, maker in {**makers, **compilers()}.items():
        try:
            call = maker(program, copied(arguments), threads)
            wrong = difference(call, right, exact=name == OURS) if call else ""
        except Exception as error:  # noqa: BLE001  # others' compilers fail in ways of their own; it is said
            wrong, call = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:100]}", None
        if wrong:
            remarks.append(f"{name}: {wrong}")
        elif call:
            calls[name] = call
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
