"""``jitkernels bench compile-time``: first calls of long functions and of deeply nested loops."""

from collections.abc import Iterator, Sequence
from time import thread_time
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks import long_functions
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

FIRST_CALL, LATER, NUMPY = "first call", "later call", "numpy"
LIMITS = {"four_deep": 1.0}
PROMISED_COMPILE_SECONDS = 2.0


def _names() -> list[str]:
    return [function.__name__ for function in long_functions.FUNCTIONS]


def verdict(lines: Sequence[Line]) -> Verdict:
    slow = [
        line.group
        for line in lines
        if line.timings[FIRST_CALL].seconds > LIMITS.get(line.group, PROMISED_COMPILE_SECONDS) or line.detail
    ]
    longest = max(line.timings[FIRST_CALL].seconds for line in lines)
    text = f"{longest:.2f} s at most (promised: {PROMISED_COMPILE_SECONDS:g} s, four_deep {LIMITS['four_deep']:g} s)"
    return Verdict(f"{text}, too slow: {', '.join(slow) or 'none'}", not slow)


@benchmark("compile-time", verdict=verdict, parts=_names)
def compile_time(settings: Settings) -> Iterator[Line]:
    """Functions of 200 lines and deep loops: the first call in a process with an empty cache, and a later one."""
    for name in settings.some_of(_names()):
        with empty_cache() as cache:
            measurement = run(__name__, "child", name, cache=cache, JITKERNELS_NUM_THREADS="1")
        timings = {kind: Timing(measurement[kind], 0.0) for kind in (FIRST_CALL, LATER, NUMPY)}
        yield Line(name, "", timings, detail=measurement["reason"])


def child(name: str) -> dict[str, Any]:
    """Return seconds of the first call, a later one and NumPy; and the reason if all of it falls back to NumPy."""
    function, arguments = next(
        (candidate, factory) for candidate, factory in long_functions.FUNCTIONS.items() if candidate.__name__ == name
    )
    jk.jit(lambda x: -x)(np.ones(3))  # these imports do not count as compile time
    compiled = jk.jit(function)
    results, seconds = [], []
    for call in (compiled, compiled, function):
        inputs = arguments()
        began = thread_time()
        results.append(call(*inputs))
        seconds.append(thread_time() - began)
    for result, expected in zip(results[0], results[2], strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)
    status = str(compiled.explain(*arguments())).splitlines()[0]
    reason = status if "falls back to NumPy" in status else ""
    return {**dict(zip((FIRST_CALL, LATER, NUMPY), seconds, strict=True)), "reason": reason}
