"""``jitkernels bench science``: programs of science, several spellings each, against NumPy and numba.

Of numba there are two figures: its fastest code, of the spelling in loops, beside all spellings; and the same code.
"""

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.science import science_programs
from jitkernels.benchmarks.science.science_program import difference_of
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing, measure

JIT, NUMPY, NUMBA, SAME_CODE = "jit", "numpy", "numba", "numba, same code"
PROMISED = {NUMPY: 6.0, NUMBA: 2.0, SAME_CODE: 2.0}
MAX_FIRST_CALL_SECONDS = 0.5
ONE_THREAD = {f"{one}_NUM_THREADS": "1" for one in ("OPENBLAS", "MKL", "JITKERNELS")}
NUMBA_SPELLING = "loops"
MIN_PROGRAM_SECONDS = 0.3
"""Of the timing of one program, whose calls take up to tens of milliseconds."""


def verdict(lines: Sequence[Line]) -> Verdict:
    compiled = [line for line in lines if JIT in line.timings]
    words, holds = [f"{len(compiled)} of {len(lines)} compiled without a break"], len(compiled) == len(lines)
    for name, promised in PROMISED.items():
        ratios = {
            f"{line.group}, {line.case}": line.timings[name].seconds / line.timings[JIT].seconds
            for line in compiled
            if name in line.timings
        }
        if ratios:
            mean, least = geometric_mean([*ratios.values()]), min(ratios, key=lambda label: ratios[label])
            words.append(
                f"{mean:.2f} times as fast as {name} (promised: {promised:g}), at least {ratios[least]:.2f} ({least})"
            )
            holds = holds and mean >= promised and (name != NUMPY or ratios[least] >= 1)
    slow = [f"{line.group}, {line.case}" for line in compiled if line.figures["first call s"] > MAX_FIRST_CALL_SECONDS]
    words.append(f"first calls take more than {MAX_FIRST_CALL_SECONDS:g} s: {'; '.join(slow) or 'nowhere'}")
    return Verdict("; ".join(words), holds and not slow)


def _names() -> list[str]:
    return [*science_programs()]


@benchmark("science", verdict=verdict, against=NUMPY, parts=_names)
def science(settings: Settings) -> Iterator[Line]:
    """Stencils, solvers, sparse matrices, spectra and more, in the spellings of users: first and later calls."""
    for name in settings.some_of(_names()):
        with empty_cache() as cache:
            measurement = run(__name__, "child", name, settings.seconds, cache=cache, **ONE_THREAD)
        times = {label: Timing(*values) for label, values in measurement["times"].items()}
        for spelling in science_programs()[name].spellings:
            peers = {NUMPY: NUMPY, NUMBA: _by_numba(NUMBA_SPELLING), SAME_CODE: _by_numba(spelling)}
            timings = {label: times[key] for label, key in peers.items() if key in times}
            first_calls = measurement["first calls"]
            figures = {f"{label} first call s": first_calls[peers[label]] for label in timings.keys() & {NUMBA}}
            if spelling in times:
                timings[JIT] = times[spelling]
                figures["first call s"] = first_calls[spelling]
                for label in timings.keys() & {NUMBA, SAME_CODE}:  # the speedup over NumPy is a row of every table
                    figures[f"x {label}"] = round(timings[label].seconds / times[spelling].seconds, 2)
            yield Line(
                name, spelling, timings, JIT if JIT in timings else "", figures=figures,
                detail=measurement["remarks"].get(spelling, ""),
            )  # fmt: skip


def _by_numba(spelling: str) -> str:
    """The label of a spelling that numba compiles."""
    return f"{NUMBA} {spelling}"


def child(name: str, seconds: float) -> dict[str, Any]:
    """Return seconds of later calls of all spellings, and of first calls."""
    program = science_programs()[name]
    inputs = partial(program.inputs, program.size, program.dtypes[0])
    jk.jit(lambda x: -x)(np.ones(3))  # these imports do not count as compile time
    candidates: dict[str, Callable[..., Any]] = {
        spelling: jk.jit(function, strict=True) for spelling, function in program.spellings.items()
    }
    if importlib.util.find_spec("numba"):
        import numba

        numba.njit(lambda x: -x)(np.ones(3))
        candidates |= {_by_numba(spelling): numba.njit(function) for spelling, function in program.spellings.items()}
    expected = program.baseline(*inputs())
    first_calls, remarks, calls = {}, {}, {NUMPY: partial(program.baseline, *inputs())}
    for label, function in candidates.items():
        arguments = inputs()
        started = perf_counter()
        try:
            result = function(*arguments)
        except Exception as error:  # noqa: BLE001  # numba raises errors of many types for unsupported code
            remarks[label] = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:200]}"
            continue
        first_calls[label] = round(perf_counter() - started, 3)
        if (error_found := difference_of(result, expected)) > program.rtol:
            remarks[label] = f"wrong by {error_found:.1e}"
            continue
        calls[label] = partial(function, *inputs())
    times = measure(calls, budget=max(seconds, MIN_PROGRAM_SECONDS), clock=process_time)
    return {
        "times": {label: [timing.seconds, timing.spread] for label, timing in times.items()},
        "first calls": first_calls,
        "remarks": remarks,
    }
