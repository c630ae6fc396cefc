"""``jitkernels bench programs``: programs with loops, unchanged but for the decorator, against NumPy, numba and JAX."""

import importlib.util
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks import scalar_programs, whole_programs
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing, measure

JIT, NUMPY, NUMBA, JAX = "jit", "numpy", "numba", "jax"
PROMISED = {NUMPY: 10.0, NUMBA: 1.0}
PROGRAMS = {**whole_programs.PROGRAMS, **scalar_programs.PROGRAMS}
MAX_PROGRAM_SECONDS = 1.0
ONE_THREAD = {
    **{f"{one}_NUM_THREADS": "1" for one in ("OPENBLAS", "MKL", "JITKERNELS")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def _names() -> list[str]:
    return [program.__name__ for program in PROGRAMS]


def verdict(lines: Sequence[Line]) -> Verdict:
    words, holds = [], True
    for name, promised in PROMISED.items():
        ratios = [line.timings[name].seconds / line.timings[JIT].seconds for line in lines if name in line.timings]
        if ratios:
            mean = geometric_mean(ratios)
            words.append(f"{mean:.2f} times as fast as {name} (promised: {promised:g})")
            holds = holds and mean >= promised
    behind = {
        line.group: line.timings[JAX].seconds / line.timings[JIT].seconds for line in lines if JAX in line.timings
    }
    if behind:
        least = min(behind, key=lambda name: behind[name])
        words.append(f"at least {behind[least]:.2f} times as fast as {JAX} on each ({least}; promised: 1)")
        holds = holds and behind[least] >= 1
    slow = [line.group for line in lines if line.figures["compile s"] > MAX_PROGRAM_SECONDS]
    words.append(f"compiling takes more than {MAX_PROGRAM_SECONDS:g} s: {', '.join(slow) or 'nowhere'}")
    return Verdict("; ".join(words), holds and not slow)


@benchmark("programs", verdict=verdict, against=NUMPY, parts=_names)
def programs(settings: Settings) -> Iterator[Line]:
    """Programs with loops, each in its own process with an empty cache: compile times, and later calls."""
    for name in settings.some_of(_names()):
        with empty_cache() as cache:
            measurement = run(__name__, "child", name, settings.seconds, cache=cache, **ONE_THREAD)
        timings = {contestant: Timing(*values) for contestant, values in measurement["times"].items()}
        figures = {
            f"x {contestant}": round(timings[contestant].seconds / timings[JIT].seconds, 2) for contestant in timings
        }
        del figures[f"x {JIT}"], figures[f"x {NUMPY}"]  # always a row of the table
        yield Line(
            name, "", timings, JIT, figures={**figures, **measurement["compiling"]}, detail=measurement["remark"]
        )


def _of_jax(name: str, arguments: tuple[Any, ...], expected: Any, seconds: float) -> tuple[Any, float]:
    """Return the call of a program's fastest JAX form, and the seconds of its first call."""
    from jitkernels.benchmarks import programs_in_jax

    calls, first = {}, {}
    for number, form in enumerate(programs_in_jax.forms_of(name)):
        call = calls[str(number)] = programs_in_jax.call_of(form, arguments)
        started = perf_counter()
        result = call()
        first[str(number)] = perf_counter() - started
        # Some trip counts depend on rounding, and XLA contracts products and sums to FMA.
        if np.isclose(result, expected, rtol=1e-9).mean() < (0.99 if expected.dtype.kind == "i" else 1.0):
            raise AssertionError(f"{name} of {JAX} has a different result")
    times = measure(calls, budget=seconds, clock=process_time)
    best = min(times, key=lambda label: times[label].seconds)
    return calls[best], first[best]


def _called(call: Callable[..., Any], arguments: Sequence[Any], written: Container[int]) -> Any:
    """Return the call with copies of the arrays that the program writes to."""
    return call(*(argument.copy() if i in written else argument for i, argument in enumerate(arguments)))


def child(name: str, seconds: float) -> dict[str, Any]:
    """Return seconds of calls, and of the first one."""
    function, arguments = next(
        (candidate, factory) for candidate, factory in PROGRAMS.items() if candidate.__name__ == name
    )
    jk.jit(lambda x: -x)(np.ones(3))  # these imports do not count as compile time
    contestants: dict[str, Callable[..., Any]] = {NUMPY: function, JIT: jk.jit(function)}
    if importlib.util.find_spec("numba"):
        import numba

        contestants[NUMBA] = numba.njit(function)
    inputs, before = arguments(), arguments()
    expected = np.array(function(*inputs))
    written = {i for i, candidate in enumerate(inputs) if not np.array_equal(candidate, before[i])}
    compiling, remarks = {}, []
    for contestant, call in [*contestants.items()][1:]:
        started = perf_counter()
        try:
            result = call(*arguments())
        except Exception as error:  # noqa: BLE001  # numba raises errors of many types for unsupported code
            remarks.append(f"{contestant}: {type(error).__name__}")
            del contestants[contestant]
            continue
        compiling["compile s" if contestant == JIT else f"{contestant} compile s"] = round(perf_counter() - started, 2)
        np.testing.assert_allclose(result, expected, rtol=1e-9, err_msg=contestant)
    inputs = arguments()
    calls = {contestant: partial(_called, call, inputs, written) for contestant, call in contestants.items()}
    if function in whole_programs.PROGRAMS and importlib.util.find_spec("jax"):
        calls[JAX], first = _of_jax(name, inputs, expected, max(seconds, 0.5) / 4)
        compiling[f"{JAX} compile s"] = round(first, 2)
    # JAX computes on its own threads, and processor time counts all threads.
    times = measure(calls, budget=max(seconds, 0.5), clock=process_time)
    return {
        "times": {contestant: [candidate.seconds, candidate.spread] for contestant, candidate in times.items()},
        "compiling": compiling,
        "remark": "; ".join(remarks),
    }
