"""``jitkernels bench first-expression``: time to the first result of an expression that was never compiled before.

Measured in a process that has compiled before, in a fresh process, and with the object on disk from another process.
Also measured: functions of more than five operations, such as row reductions, angles and powers. Before the first of
them, only code that all calls share is loaded.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.processes import empty_cache, run, script
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

EXPRESSIONS = {TINY_TAG: 1, "ci": 10, "full": 100}
EXPRESSION_PROCESSES = 3
"""An expression is new once per process, so the minimum over this many processes counts."""
WARM, FRESH, DISK = "warm process", "fresh process", "from disk"
LIMITS = {WARM: 0.04, FRESH: 0.2, DISK: 0.01}


def softmax(a: Any, b: Any, c: Any) -> Any:
    powers = np.exp((a * b + c) - (a * b + c).max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def layer_norm(a: Any, b: Any, c: Any) -> Any:
    centred = a - a.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) * b + c


ROWS = {"softmax": softmax, "layer norm": layer_norm}
LENGTHS = 8, 50, 200
"""Row lengths: several rows per vector, rows that fit in registers, and longer ones."""
NAMED: dict[str, tuple[Callable[..., Any], int]] = {
    **{f"{name}, rows of {length}": (function, length) for name, function in ROWS.items() for length in LENGTHS},
    "sin": (lambda a, b, c: np.sin(a * b + c) * a - b, 0),
    "tan": (lambda a, b, c: np.tan(a * b + c) * a - b, 0),
    "arctan2": (lambda a, b, c: np.arctan2(a * b, c) * a - b, 0),
    "log": (lambda a, b, c: np.log(a * b + c) * a - b, 0),
    "power": (lambda a, b, c: np.power(a * b, c) * a - b, 0),
}
"""Functions, and the length of the rows of their arguments; 0 for one-dimensional arrays."""
EXPRESSION_PROGRAM = """
import json, sys, time
import numpy as np
a, b, c = (np.linspace(0.5, 1.5, 1000 + i, dtype=np.float32)[:1000] for i in range(3))
start = time.perf_counter()
import jitkernels as jk
first, second, third, fourth, fifth = (getattr(np, name) for name in sys.argv[1:])
jk.jit(lambda a, b, c: fifth(fourth(third(second(first(a, b)), c)), a))(a, b, c)
print(json.dumps([time.perf_counter() - start, "numba" in sys.modules]))
"""


def verdict(lines: Sequence[Line]) -> Verdict:
    slowest = {line.case: line.timings["slowest"].seconds for line in lines}
    limits = {case: LIMITS.get(case, LIMITS[WARM]) for case in slowest}
    words = (f"{case} {seconds * 1e3:.0f} ms (promised: {limits[case] * 1e3:.0f})" for case, seconds in slowest.items())
    imported = any(line.figures["numba imported"] for line in lines)
    return Verdict(
        f"first result of a new expression at most: {', '.join(words)}; numba is {'' if imported else 'not '}imported",
        not imported and all(seconds <= limits[case] for case, seconds in slowest.items()),
    )


@benchmark("first-expression", verdict=verdict)
def first_expression(settings: Settings) -> Iterator[Line]:
    """The first result of expressions of five operations: warm process, fresh process, from disk."""
    numbers = range(1, 1 + EXPRESSIONS[settings.tag])
    measurements: dict[str, list[list[float]]] = {WARM: [], DISK: [], FRESH: []}
    imported = dict.fromkeys(measurements, False)
    processes = settings.limited(range(EXPRESSION_PROCESSES))
    for _ in processes:
        with empty_cache() as cache:
            for case in (WARM, DISK):
                times, numba = run(__name__, "child", list(numbers), cache=cache)
                measurements[case].append(times)
                imported[case] |= numba
        times = []
        for number in numbers:
            with empty_cache() as cache:
                seconds, numba = script(
                    EXPRESSION_PROGRAM, *(step.__name__ for step in steps(number)), JITKERNELS_CACHE_DIR=str(cache)
                )
            times.append(seconds)
            imported[FRESH] |= numba
        measurements[FRESH].append(times)
    for case, runs in measurements.items():
        least = sorted(map(min, zip(*runs, strict=True)))
        timings = {"median": Timing(least[len(least) // 2], 0.0), "slowest": Timing(least[-1], 0.0)}
        yield Line("first-expression", case, timings, figures={"numba imported": float(imported[case])})
    for name in settings.limited(NAMED):
        times = []
        for _ in processes:
            with empty_cache() as cache:
                times.append(run(__name__, "named_child", name, cache=cache))
        took = Timing(min(times), 0.0)
        yield Line("first-expression", name, {"median": took, "slowest": took}, figures={"numba imported": 0.0})


def steps(number: int) -> list[np.ufunc]:
    """Return the five operations of one of 4500 expressions."""
    joining = np.add, np.subtract, np.multiply, np.maximum, np.minimum
    bending = np.exp, np.tanh, np.sin, np.sqrt, np.log1p, np.negative
    ufuncs: list[np.ufunc] = []
    for choices in (joining, bending, joining, bending, joining):
        number, chosen = divmod(number, len(choices))
        ufuncs.append(choices[chosen])
    return ufuncs


def expression(number: int) -> Callable[..., Any]:
    """Return a function of three arrays that computes it."""
    first, second, third, fourth, fifth = steps(number)
    return lambda a, b, c: fifth(fourth(third(second(first(a, b)), c)), a)


def child(numbers: Sequence[int]) -> tuple[list[float], bool]:
    """Return seconds to each first result, after compiling another expression; and whether numba is imported."""
    arrays = [np.linspace(0.5, 1.5, 1000, dtype=np.float32) for _ in range(3)]
    times = []
    with np.errstate(all="ignore"):
        jk.jit(expression(0))(*arrays)
        for number in numbers:
            function = expression(number)
            started = perf_counter()
            result = jk.jit(function)(*arrays)
            times.append(perf_counter() - started)
            np.testing.assert_allclose(result, function(*arrays), rtol=1e-4, atol=1e-5)
    return times, "numba" in sys.modules


def named_child(name: str) -> float:
    """Return seconds to the first result of a function, after compiling others with arrays of the same rank."""
    function, length = NAMED[name]
    shape = (50, length) if length else (1000,)
    arrays = [np.linspace(0.5, 1.5, math.prod(shape), dtype=np.float32).reshape(shape) for _ in range(3)]
    jk.jit(lambda a, b, c: a - b + c)(*arrays)
    started = perf_counter()
    result = jk.jit(function)(*arrays)
    took = perf_counter() - started
    np.testing.assert_allclose(result, function(*arrays), rtol=1e-3, atol=1e-4)
    return took
