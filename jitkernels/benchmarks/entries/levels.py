"""``jitkernels bench levels``: speedup of optimization and fusion on all benchmark programs.

First come the two expressions of MegBrain's published JIT benchmark, on arrays in memory; then every program of
`bench expressions`, every one of `bench programs`, and the step of `bench training`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter, thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks import whole_programs
from jitkernels.benchmarks.compilers import copied
from jitkernels.benchmarks.entries import training
from jitkernels.benchmarks.peers import Bound
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean, time_calls
from jitkernels.tuning.timer import measure

LEVEL_ELEMENTS = 1 << 22
SIZES = (1 << 12, 1 << 17)
"""Elements of the programs of `bench expressions`: in L1, and in L2."""
LEVEL_3, UNFUSED, NUMPY_OUT = "level 3", "level 0", "numpy, out="
LEAST = {UNFUSED: 1.5, NUMPY_OUT: 1.0}
PROMISED_LEVEL_MEAN = 1.5


def verdict(lines: Sequence[Line]) -> Verdict:
    """Report both promised ratios of the first two expressions, and the ratios of all other programs."""
    large = [line for line in lines if NUMPY_OUT in line.timings]
    speeds = {(line.group, name): line.speed_over(name) or 0.0 for line in large for name in LEAST}
    words = [f"{group} {speed:.2f} times {name} (promised: {LEAST[name]})" for (group, name), speed in speeds.items()]
    holds = all(speed >= LEAST[name] for (_, name), speed in speeds.items())
    suite = {f"{line.group}, {line.case}": line.speed_over(UNFUSED) or 0.0 for line in lines if line not in large}
    if suite:
        mean = geometric_mean([*suite.values()])
        words.append(f"{len(suite)} programs {mean:.2f} times {UNFUSED} (promised: {PROMISED_LEVEL_MEAN})")
        holds = holds and mean >= PROMISED_LEVEL_MEAN
    text = [f"{LEVEL_3}: {'; '.join(words)}"]
    text += [f"  {speed:.2f} {name}" for name, speed in sorted(suite.items(), key=lambda entry: entry[1]) if speed < 1]
    return Verdict("\n".join(text), holds)


@benchmark("levels", verdict=verdict, against=UNFUSED)
def levels(settings: Settings) -> Iterator[Line]:
    """a * b * c and a * b + c of 2^22 float32 at levels 0 and 3, and NumPy with out=; then all programs."""
    for name, ufunc in (("product", np.multiply), ("product_and_sum", np.add)):
        program = all_programs()[name]
        a, b, c = program.arguments(LEVEL_ELEMENTS, "float32")
        out = np.empty_like(a)
        calls: dict[str, Bound] = {
            label: partial(jk.jit(program.function, opt_level=level), a, b, c, out=out)
            for label, level in ((LEVEL_3, 3), (UNFUSED, 0))
        }
        calls[NUMPY_OUT] = partial(_by_numpy, ufunc, a, b, c, out)
        timings = time_calls(calls, seconds=4 * settings.seconds, rounds=(5, 40))
        yield Line(name, f"{LEVEL_ELEMENTS} elements", timings, LEVEL_3)
    if settings.tag == "full":
        yield from _suite(settings)


def _suite(settings: Settings) -> Iterator[Line]:
    """Yield every program at both levels. Programs that write to their arguments get copies."""
    for name, program in all_programs().items():
        for elements in SIZES:
            inputs = program.arguments(elements, "float32")
            writes = program.function(*copied(inputs)) is None
            yield _line(name, f"{elements} elements", program.function, inputs, settings, writes=writes)
    for function, arguments in whole_programs.PROGRAMS.items():
        yield _line(function.__name__, "whole program", function, arguments(), settings, writes=True)
    state, (x, y) = training.state(), training.batch()
    yield _line("training", "one step", training.step, (*state, np.float32(1), x, y), settings, writes=False)


def _line(
    name: str, case: str, function: Callable[..., Any], arguments: tuple[Any, ...], settings: Settings, *, writes: bool
) -> Line:
    calls = {}
    for label, level in ((LEVEL_3, 3), (UNFUSED, 0)):
        compiled = jk.jit(function, opt_level=level)
        own = arguments if name == "training" else copied(arguments)
        calls[label] = partial(_called, compiled, own) if writes else partial(compiled, *own)
    clock = thread_time if settings.threads == 1 else perf_counter
    with np.errstate(all="ignore"):
        timings = measure(calls, budget=2 * settings.seconds, rounds=(5, 40), clock=clock)
    return Line(name, case, timings, LEVEL_3)


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return function(*copied(arguments))


def _by_numpy(ufunc: np.ufunc, a: AnyArray, b: AnyArray, c: AnyArray, out: AnyArray) -> None:
    np.multiply(a, b, out)
    ufunc(out, c, out)
