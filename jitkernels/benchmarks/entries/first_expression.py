"""``jitkernels bench first-expression``: how long the first result of an expression that nobody compiled before takes.

In a process that has compiled something, in one that has just begun, and where another process left it on disk. And
functions that are more than five operations are: of rows that are reduced, of angles, powers. Nothing that they have in
common with others is there before the first of them, but for what all calls share.
"""

import math
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


def softmax(a: Any, b: Any, c: Any) -> Any:
    powers = np.exp((a * b + c) - (a * b + c).max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def layer_norm(a: Any, b: Any, c: Any) -> Any:
    apart = a - a.mean(axis=-1, keepdims=True)
    return apart / np.sqrt((apart * apart).mean(axis=-1, keepdims=True) + 1e-5) * b + c


ROWS = {"softmax": softmax, "layer norm": layer_norm}
LENGTHS = 8, 50, 200
"""Of rows: of those that are done several at once, those that fit in registers, and longer ones."""
NAMED: dict[str, tuple[Callable[..., Any], int]] = {
    **{
        f"{name}, rows of {length}": (function, length)
        for name, function in ROWS.items()
        for length in LENGTHS
    },
    "sin": (lambda a, b, c: np.sin(a * b + c) * a - b, 0),
    "tan": (lambda a, b, c: np.tan(a * b + c) * a - b, 0),
    "arctan2": (lambda a, b, c: np.arctan2(a * b, c) * a - b, 0),
    "log": (lambda a, b, c: np.log(a * b + c) * a - b, 0),
    "power": (lambda a, b, c: np.power(a * b, c) * a - b, 0),
}
"""Functions, and how long the rows are that they are called with; 0 for arrays of one dimension."""
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
    limits = {case: LIMITS.get(case, LIMITS[WARM]) for case in found}
    words = (
        f"{case} {seconds * 1e3:.0f} ms (promised: {limits[case] * 1e3:.0f})"
        for case, seconds in found.items()
    )
    imported = any(line.figures["numba imported"] for line in lines)
    return Verdict(
        f"first result of a new expression at most: {', '.join(words)}; numba is {'' if imported else 'not '}imported",
        not imported and all(seconds <= limits[case] for case, seconds in found.items()),
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
    for name in NAMED:
        times = []
        for _ in range(PROCESSES):
            with empty_cache() as cache:
                times.append(run(__name__, "named_child", name, cache=cache))
        took = Timing(min(times), 0.0)
        yield Line(
            "first-expression", name, {"median": took, "slowest": took}, figures={"numba imported": 0.0}
        )


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


def named_child(name: str) -> float:
    """Seconds until the first result of a function, others of as many dimensions having been compiled before."""
    jit = own_compiler()
    function, length = NAMED[name]
    shape = (50, length) if length else (1000,)
    arrays = [np.linspace(0.5, 1.5, math.prod(shape), dtype=np.float32).reshape(shape) for _ in range(3)]
    jit(lambda a, b, c: a - b + c)(*arrays)
    started = perf_counter()
    result = jit(function)(*arrays)
    took = perf_counter() - started
    np.testing.assert_allclose(result, function(*arrays), rtol=1e-3, atol=1e-4)
    return took
