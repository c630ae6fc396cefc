"""``jitkernels bench first-expression``: how long the first result of an expression that nobody compiled before takes.

In a process that has compiled something, in one that has just begun, and where another process left it on disk.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.processes import empty_cache, run, script
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

EXPRESSIONS = {"ci": 10, "full": 100}
PROCESSES = 3
"""An expression is new once in a process: the least of so many processes counts for each."""
WARM, FRESH, DISK = "warm process", "fresh process", "from disk"
LIMITS = {WARM: 0.04, FRESH: 0.2, DISK: 0.01}
CHILD = """
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
    found = {line.case: line.timings["slowest"].seconds for line in lines}
    words = (
        f"{case} {seconds * 1e3:.0f} ms (promised: {LIMITS[case] * 1e3:.0f})"
        for case, seconds in found.items()
    )
    imported = any(line.figures["numba imported"] for line in lines)
    return Verdict(
        f"first result of a new expression at most: {', '.join(words)}; numba is {'' if imported else 'not '}imported",
        not imported and all(seconds <= LIMITS[case] for case, seconds in found.items()),
    )


@benchmark("first-expression", verdict=verdict)
def first_expression(settings: Settings) -> Iterator[Line]:
    """The first result of expressions of five operations: warm process, fresh process, from disk."""
    own_compiler()
    numbers = range(1, 1 + EXPRESSIONS[settings.tag])
    found: dict[str, list[list[float]]] = {WARM: [], DISK: [], FRESH: []}
    imported = dict.fromkeys(found, False)
    for _ in range(PROCESSES):
        with empty_cache() as cache:
            for case in (WARM, DISK):
                times, numba = run(__name__, "child", list(numbers), cache=cache)
                found[case].append(times)
                imported[case] |= numba
        times = []
        for number in numbers:
            with empty_cache() as cache:
                seconds, numba = script(
                    CHILD, *(step.__name__ for step in steps(number)), JITKERNELS_CACHE_DIR=str(cache)
                )
            times.append(seconds)
            imported[FRESH] |= numba
        found[FRESH].append(times)
    for case, runs in found.items():
        least = sorted(map(min, zip(*runs, strict=True)))
        timings = {"median": Timing(least[len(least) // 2], 0.0), "slowest": Timing(least[-1], 0.0)}
        yield Line("first-expression", case, timings, figures={"numba imported": float(imported[case])})


def steps(number: int) -> list[np.ufunc]:
    """The five operations of one of 4500 expressions."""
    joining = np.add, np.subtract, np.multiply, np.maximum, np.minimum
    bending = np.exp, np.tanh, np.sin, np.sqrt, np.log1p, np.negative
    found: list[np.ufunc] = []
    for choices in (joining, bending, joining, bending, joining):
        number, chosen = divmod(number, len(choices))
        found.append(choices[chosen])
    return found


def expression(number: int) -> Callable[..., Any]:
    """A function of three arrays that computes it."""
    first, second, third, fourth, fifth = steps(number)
    return lambda a, b, c: fifth(fourth(third(second(first(a, b)), c)), a)


def child(numbers: Sequence[int]) -> tuple[list[float], bool]:
    """Seconds until the first result of each expression, another one having been compiled before; is numba there?"""
    jit = own_compiler()
    arrays = [np.linspace(0.5, 1.5, 1000, dtype=np.float32) for _ in range(3)]
    times = []
    with np.errstate(all="ignore"):
        jit(expression(0))(*arrays)
        for number in numbers:
            function = expression(number)
            started = perf_counter()
            result = jit(function)(*arrays)
            times.append(perf_counter() - started)
            np.testing.assert_allclose(result, function(*arrays), rtol=1e-4, atol=1e-5)
    return times, "numba" in sys.modules
