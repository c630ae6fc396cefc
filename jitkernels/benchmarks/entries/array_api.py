"""``jitkernels bench array-api``: expressions of `jk.xp` beside the same ones of NumPy and numexpr."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from jitkernels import xp
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import measure

OURS, NUMPY, NUMEXPR = "jitkernels", "numpy", "numexpr"
SIZES = {
    TINY_TAG: (8,),
    "ci": (8, 1000, 100_000, 1_000_000),
    "full": (8, 64, 1000, 16_000, 100_000, 1_000_000, 8_000_000),
}
LARGE = 100_000
"""Elements from which on expressions are fused, with gain."""
MAX_SLOWDOWN_OF_SMALL = 8.0
"""Arrays of a few elements: an operator of an array object in Python takes 0.5 us beside NumPy's 0.3 us."""
EXPRESSIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "sum": (lambda _, x, y: x + y, "x + y"),
    "scaled exponential": (lambda space, x, y: space.exp(-x * x) * 2 + y, "exp(-x * x) * 2 + y"),
    "rational": (lambda _, x, y: (x * y - 0.5) / (x + 1.5) * x + y * y, "(x * y - 0.5) / (x + 1.5) * x + y * y"),
    "squared distance": (lambda space, x, y: space.sum((x - y) ** 2), "sum((x - y) ** 2)"),
    "chosen": (lambda space, x, y: space.where(x > y, x - y, space.sqrt(x)), "where(x > y, x - y, sqrt(x))"),
}
"""By name: a function of a namespace and two vectors, and its text for numexpr."""


def verdict(lines: Sequence[Line]) -> Verdict:
    large = [line for line in lines if int(line.case) >= LARGE]
    small = [line for line in lines if int(line.case) < LARGE]
    texts, holds = [], True
    for name in (NUMPY, NUMEXPR):
        ratios = [_ratio(line, name) for line in large if name in line.timings]
        if ratios:
            mean = geometric_mean(ratios)
            texts.append(f"from {LARGE} elements on {mean:.2f} times as fast as {name}, at least {min(ratios):.2f}")
            holds = holds and mean > 1
    if small:
        least = min(_ratio(line, NUMPY) for line in small)
        texts.append(f"small arrays at least {least:.2f} times as fast as NumPy")
        holds = holds and least >= 1 / MAX_SLOWDOWN_OF_SMALL
    return Verdict("; ".join(texts), holds)


def _ratio(line: Line, name: str) -> float:
    return line.timings[name].seconds / line.timings[OURS].seconds


def _names() -> list[str]:
    return [*EXPRESSIONS]


@benchmark("array-api", verdict=verdict, against=NUMPY, parts=_names)
def array_api(settings: Settings) -> Iterator[Line]:
    """Expressions of two float64 vectors, evaluated to memory; arrays of all contestants exist before."""
    generator = np.random.default_rng(0)
    for name in settings.some_of(_names()):
        function, text = EXPRESSIONS[name]
        for size in SIZES[settings.tag]:
            x, y = generator.random(size), generator.random(size)
            calls: dict[str, Callable[[], Any]] = {
                OURS: partial(_evaluated, function, xp.asarray(x), xp.asarray(y)),
                NUMPY: partial(function, np, x, y),
            }
            if find_spec("numexpr") is not None:
                import numexpr

                calls[NUMEXPR] = partial(numexpr.evaluate, text, {"x": x, "y": y})
            yield Line(name, str(size), measure(calls, budget=settings.seconds), OURS)


def _evaluated(function: Callable[..., Any], x: Any, y: Any) -> Any:
    return np.asarray(function(xp, x, y))
