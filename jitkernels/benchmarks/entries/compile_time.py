"""``jitkernels bench compile-time``: first calls of long functions, and of loops in loops in loops."""

from collections.abc import Iterator, Sequence
from time import thread_time
from typing import Any

import numpy as np

from jitkernels.benchmark import long_functions
from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.processes import empty_cache, run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

FIRST, LATER, NUMPY = "first call", "later call", "numpy"
LIMITS = {"four_deep": 1.0}
MOST_SECONDS = 2.0


def _names() -> list[str]:
    return [one.__name__ for one in long_functions.FUNCTIONS]


def verdict(lines: Sequence[Line]) -> Verdict:
    slow = [
        line.group
        for line in lines
        if line.timings[FIRST].seconds > LIMITS.get(line.group, MOST_SECONDS) or line.detail
    ]
    longest = max(line.timings[FIRST].seconds for line in lines)
    text = f"{longest:.2f} s at most (promised: {MOST_SECONDS:g} s, four_deep {LIMITS['four_deep']:g} s)"
    return Verdict(f"{text}, too slow: {', '.join(slow) or 'none'}", not slow)


@benchmark("compile-time", verdict=verdict, parts=_names)
def compile_time(settings: Settings) -> Iterator[Line]:
    """Functions of 200 lines and deep loops: the first call in a process with an empty cache, and a later one."""
    for name in settings.parts or _names():
        with empty_cache() as cache:
            found = run(__name__, "child", name, cache=cache, JITKERNELS_NUM_THREADS="1")
        timings = {one: Timing(found[one], 0.0) for one in (FIRST, LATER, NUMPY)}
        yield Line(name, "", timings, detail=found["reason"])


def child(name: str) -> dict[str, Any]:
    """Seconds of the first call, of a later one and of NumPy; why NumPy does all of it, where it does."""
    function, arguments = next(
        (one, made) for one, made in long_functions.FUNCTIONS.items() if one.__name__ == name
    )
    own_compiler()(np.negative)(np.ones(3))  # what is imported then is no part of compiling
    compiled = own_compiler()(function)
    results, seconds = [], []
    for call in (compiled, compiled, function):
        given = arguments()
        began = thread_time()
        results.append(call(*given))
        seconds.append(thread_time() - began)
    for found, expected in zip(results[0], results[2], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    told = str(compiled.explain(*arguments())).splitlines()[0]
    reason = told if "left to NumPy" in told else ""
    return {**dict(zip((FIRST, LATER, NUMPY), seconds, strict=True)), "reason": reason}
