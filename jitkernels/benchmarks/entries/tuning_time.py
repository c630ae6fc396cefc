"""``jitkernels bench tuning-time``: cost of online tuning in a loop of calls with a cold cache.

What the dispatcher delegates to Python is timed: there candidates are measured, and kernels of one size built, once
calls have paid for them. The cost of calls before and after is that of the first loop and of the warm one.
"""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import jitkernels as jk
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.runtime.abi_layout import OperatorTable
from jitkernels.tuning.timer import Timing

CALLS_OF_RUN, CALLS_OF_TINY = 100_000, 100
MAX_LOOP_SECONDS = 20.0
"""A loop ends after this many seconds, whatever its number of calls."""
SIZES = {TINY_TAG: (8,), "ci": (8, 1000), "full": (8, 1000, 30_000)}
PROMISED_TUNING_SHARE = 1.0
BUILDING = 0.8
"""Seconds of building in the first call of a process, which do not count as tuning; see `first-call`."""


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {}
    for line in lines:
        paused = line.timings["pauses"].seconds
        calls = max(line.timings["first loop"].seconds - paused, 1e-9)
        in_first_call = max(0.0, line.timings["first call"].seconds - BUILDING)
        shares[f"{line.group}, {line.case}"] = (paused + in_first_call) / calls
    worst = max(shares, key=lambda name: shares[name])
    return Verdict(
        f"of {CALLS_OF_RUN} calls, tuning takes at most {shares[worst]:.0%} of the time of the others, {BUILDING} s of "
        f"building not counted ({worst}; promised: {PROMISED_TUNING_SHARE:.0%})",
        shares[worst] <= PROMISED_TUNING_SHARE,
    )


@benchmark("tuning-time", verdict=verdict)
def tuning_time(settings: Settings) -> Iterator[Line]:
    """A loop of 10^5 calls in a fresh process with an empty cache, its pauses for tuning, and the same loop later.

    The first call is listed separately; its time beyond building counts as tuning.
    """
    for attr_class in settings.limited(settings.schemas):
        name = attr_class.kernel_type.name.lower()
        for elements in SIZES[settings.tag] if ordinary_calls_of(attr_class, 8) else ():
            with empty_cache() as cache:
                calls = CALLS_OF_TINY if settings.is_tiny else CALLS_OF_RUN
                measurements = run(__name__, "child", name, elements, calls, cache=cache, JITKERNELS_TUNE="auto")
            timings = {key: Timing(seconds, 0.0) for key, seconds in measurements.items()}
            yield Line(name, f"{elements} elements", timings)


class _Watched:
    """A proxy of an everyday function's Python path that adds up its time."""

    def __init__(self, function: Any) -> None:
        self.seconds = 0.0
        self._original: Callable[..., Any] = function.__self__.call
        function.__self__._context[OperatorTable.SLOW] = id(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        started = perf_counter()
        try:
            return self._original(*arguments, **named)
        finally:
            self.seconds += perf_counter() - started


def child(name: str, elements: int, most: int) -> dict[str, float]:
    """Return seconds of the first call, of the following loop, of its pauses, and of the faster of two more loops."""
    function = getattr(jk, name)
    call = ordinary_calls_of(op_schema(name), elements)[0].bind(function)

    def loop(calls: int) -> tuple[float, int]:
        started = perf_counter()
        for done in range(1, calls + 1):
            call()
            if done % 1000 == 0 and perf_counter() - started > MAX_LOOP_SECONDS:
                break
        return perf_counter() - started, done

    first = loop(1)[0]
    watched = _Watched(function)
    cold, calls = loop(most)
    paused = watched.seconds
    warm = min(loop(calls)[0] for _ in range(2))
    return {"first call": first, "first loop": cold, "pauses": paused, "warm loop": warm}
