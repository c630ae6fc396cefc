"""``jitkernels bench programs``: programs with loops, unchanged but for the decorator, beside NumPy, numba and JAX."""

import importlib.util
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

from jitkernels.benchmark import scalar_programs, whole_programs
from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.processes import empty_cache, run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean
from jitkernels.tuning.timer import Timing, measure

OURS, NUMPY, NUMBA, JAX = "jit", "numpy", "numba", "jax"
PROMISED = {NUMPY: 10.0, NUMBA: 1.0}
PROGRAMS = {**whole_programs.PROGRAMS, **scalar_programs.PROGRAMS}
MOST_SECONDS = 1.0
ONE_THREAD = {
    **{f"{one}_NUM_THREADS": "1" for one in ("OPENBLAS", "MKL", "JITKERNELS")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def _names() -> list[str]:
    return [one.__name__ for one in PROGRAMS]


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for name, promised in PROMISED.items():
        ratios = [
            line.timings[name].seconds / line.timings[OURS].seconds for line in lines if name in line.timings
        ]
        if ratios:
            mean = geometric_mean(ratios)
            words.append(f"{mean:.2f} times as fast as {name} (promised: {promised:g})")
            holds = holds and mean >= promised
    behind = {
        line.group: line.timings[JAX].seconds / line.timings[OURS].seconds
        for line in lines
        if JAX in line.timings
    }
    if behind:
        least = min(behind, key=lambda name: behind[name])
        words.append(f"at least {behind[least]:.2f} times as fast as {JAX} on each ({least}; promised: 1)")
        holds = holds and behind[least] >= 1
    slow = [line.group for line in lines if line.figures["compile s"] > MOST_SECONDS]
    words.append(f"compiling takes more than {MOST_SECONDS:g} s: {', '.join(slow) or 'nowhere'}")
    return Verdict("; ".join(words), holds and not slow)


@benchmark("programs", verdict=verdict, against=NUMPY, parts=_names)
def programs(settings: Settings) -> Iterator[Line]:
    """Programs with loops, each in a process of its own with an empty cache: compile times, and later calls."""
    for name in settings.parts or _names():
        with empty_cache() as cache:
            found = run(__name__, "child", name, settings.seconds, cache=cache, **ONE_THREAD)
        timings = {contestant: Timing(*values) for contestant, values in found["times"].items()}
        figures = {f"x {one}": round(timings[one].seconds / timings[OURS].seconds, 2) for one in timings}
        del figures[f"x {OURS}"], figures[f"x {NUMPY}"]  # which the table has in any case
        yield Line(name, "", timings, OURS, figures={**figures, **found["compiling"]}, detail=found["remark"])


def _of_jax(name: str, given: tuple[Any, ...], expected: Any, seconds: float) -> tuple[Any, float]:
    """The call of the fastest form of a program, and what its first one takes."""
    from jitkernels.benchmark import programs_in_jax

    calls, first = {}, {}
    for number, form in enumerate(programs_in_jax.forms_of(name)):
        call = calls[str(number)] = programs_in_jax.call_of(form, given)
        started = perf_counter()
        found = call()
        first[str(number)] = perf_counter() - started
        # Counts of rounds hang on roundings here and there, and XLA takes a product and a sum in one.
        if np.isclose(found, expected, rtol=1e-9).mean() < (0.99 if expected.dtype.kind == "i" else 1.0):
            raise AssertionError(f"{name} of {JAX} computes something else")
    times = measure(calls, (), budget=seconds, clock=process_time)
    best = min(times, key=lambda one: times[one].seconds)
    return calls[best], first[best]


def _called(call: Callable[..., Any], given: Sequence[Any], written: Container[int]) -> Any:
    """A call with copies of what the program writes to."""
    return call(*(one.copy() if i in written else one for i, one in enumerate(given)))


def child(name: str, seconds: float) -> dict[str, Any]:
    """Seconds of calls, and of the first one."""
    function, arguments = next((one, made) for one, made in PROGRAMS.items() if one.__name__ == name)
    own_compiler()(np.negative)(np.ones(3))  # what is imported then is no part of compiling
    contestants = {NUMPY: function, OURS: own_compiler()(function)}
    if importlib.util.find_spec("numba"):
        import numba

        contestants[NUMBA] = numba.njit(function)
    given, before = arguments(), arguments()
    expected = np.array(function(*given))
    written = {i for i, one in enumerate(given) if not np.array_equal(one, before[i])}
    compiling, remarks = {}, []
    for contestant, call in [*contestants.items()][1:]:
        started = perf_counter()
        try:
            found = call(*arguments())
        except Exception as error:  # noqa: BLE001  # numba has many for what it does not take
            remarks.append(f"{contestant}: {type(error).__name__}")
            del contestants[contestant]
            continue
        compiling["compile s" if contestant == OURS else f"{contestant} compile s"] = round(
            perf_counter() - started, 2
        )
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=contestant)
    given = arguments()
    calls = {contestant: partial(_called, call, given, written) for contestant, call in contestants.items()}
    if function in whole_programs.PROGRAMS and importlib.util.find_spec("jax"):
        calls[JAX], first = _of_jax(name, given, expected, max(seconds, 0.5) / 4)
        compiling[f"{JAX} compile s"] = round(first, 2)
    # JAX computes on threads of its own, and the processor's time is that of all.
    times = measure(calls, (), budget=max(seconds, 0.5), clock=process_time)
    return {
        "times": {contestant: [one.seconds, one.spread] for contestant, one in times.items()},
        "compiling": compiling,
        "remark": "; ".join(remarks),
    }
