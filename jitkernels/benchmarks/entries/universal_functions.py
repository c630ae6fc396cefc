"""``jitkernels bench universal-functions``: `jk.vectorize` and `jk.guvectorize` beside the decorators of numba."""

import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import measure

JIT, NUMPY, NUMBA = "jit", "numpy", "numba"
ELEMENTS = (8, 1000, 100_000)
ROW_ELEMENTS = 100


def call_price(s: Any, k: Any) -> Any:
    """A European call of volatility 0.2 for one year, by Black and Scholes."""
    d = (math.log(s / k) + 0.05) / 0.2
    below = 0.5 * math.erfc(-(d - 0.1) / math.sqrt(2.0))
    return 0.5 * s * math.erfc(-(d + 0.1) / math.sqrt(2.0)) - k * 0.95 * below


def clamped_ratio(a: Any, b: Any) -> Any:
    if b == 0.0:
        return 0.0
    ratio = a / b
    if ratio > 2.0:
        return 2.0
    return ratio


def larger(a: Any, b: Any) -> Any:
    return a if a > b else b


def moving_average(x: Any, factor: Any, result: Any) -> None:
    mean = x[0]
    for i in range(x.shape[0]):
        mean = mean + factor * (x[i] - mean)
        result[i] = mean


class Universal(NamedTuple):
    """A function, what is called of it (the function itself, or a method), and the types for numba."""

    function: Callable[..., Any]
    types: str
    method: str = ""
    signature: str = ""


PROGRAMS = {
    "call price": Universal(call_price, "dd->d"),
    "clamped ratio": Universal(clamped_ratio, "dd->d"),
    "larger.reduce": Universal(larger, "dd->d", "reduce"),
    "larger.accumulate": Universal(larger, "dd->d", "accumulate"),
    "moving average of rows": Universal(moving_average, "dd->d", "", "(n),()->(n)"),
}


def by_jitkernels(program: Universal) -> Callable[..., Any]:
    decorator: Callable[..., Any] = (
        jk.guvectorize(program.signature, types=program.types)
        if program.signature
        else jk.vectorize(types=program.types)
    )
    made: Callable[..., Any] = decorator(program.function)
    return made


def by_numba(program: Universal) -> Callable[..., Any]:
    import numba

    number = numba.float64
    if program.signature:
        declared = numba.void(number[:], number, number[:])
        decorator: Callable[..., Any] = numba.guvectorize([declared], program.signature)
    else:
        decorator = numba.vectorize([number(number, number)])
    made: Callable[..., Any] = decorator(program.function)
    return made


def by_numpy(program: Universal) -> Callable[..., Any] | None:
    """`numpy.vectorize`, which calls the function for each element; None for what it does not do."""
    return None if program.method or program.signature else np.vectorize(program.function)


def verdict(lines: Sequence[Line]) -> Verdict:
    words = []
    for peer in (NUMPY, NUMBA):
        ratios = [line.timings[peer].seconds / line.timings[JIT].seconds for line in lines if peer in line.timings]
        if ratios:
            words.append(f"{geometric_mean(ratios):.2f} times as fast as {peer}, at least {min(ratios):.2f}")
    return Verdict("; ".join(words))


def _names() -> list[str]:
    return [*PROGRAMS]


@benchmark("universal-functions", verdict=verdict, against=NUMBA, parts=_names)
def universal_functions(settings: Settings) -> Iterator[Line]:
    """Functions of elements and rows, reductions and accumulations, of 8 to 100,000 float64."""
    rng = np.random.default_rng(0)
    for name in settings.some_of(_names()):
        program = PROGRAMS[name]
        made = {JIT: by_jitkernels(program), NUMPY: by_numpy(program)}
        if importlib.util.find_spec("numba"):
            made[NUMBA] = by_numba(program)
        for elements in settings.limited(ELEMENTS):
            x, y = 1 + rng.random((2, elements))
            given: tuple[Any, ...] = (x,) if program.method else (x, y)
            if program.signature:
                given = (x.reshape(-1, min(elements, ROW_ELEMENTS)), 0.1)
            calls: dict[str, Callable[[], Any]] = {
                label: partial(getattr(function, program.method) if program.method else function, *given)
                for label, function in made.items()
                if function is not None
            }
            calls[JIT]()
            yield Line(name, f"{elements} elements", measure(calls, budget=settings.seconds), JIT)
