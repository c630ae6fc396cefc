"""``jitkernels bench tuning-time``: what measuring costs whoever just calls, in a loop that begins cold.

What the dispatcher leaves to Python is timed: there candidates are measured, and kernels of one size built, once calls
have paid for them. What calls cost before and after is told by the first loop and by the warm one.
"""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import jitkernels as jk
from jitkernels.benchmark.processes import empty_cache, run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.native.layout import Table
from jitkernels.peers import ordinary_calls_of
from jitkernels.registry import row
from jitkernels.tuning.timer import Timing

CALLS = 100_000
MOST_SECONDS = 20.0
"""A loop ends after so many seconds, however many calls it has come to."""
SIZES = {"ci": (8, 1000), "full": (8, 1000, 30_000)}
LIMIT = 1.0
BUILDING = 0.8
"""Seconds that the first call of a process may take for building, which is no tuning; see `first-call`."""


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {}
    for line in lines:
        paused = line.timings["pauses"].seconds
        calls = max(line.timings["first loop"].seconds - paused, 1e-9)
        in_first_call = max(0.0, line.timings["first call"].seconds - BUILDING)
        shares[f"{line.group}, {line.case}"] = (paused + in_first_call) / calls
    worst = max(shares, key=lambda name: shares[name])
    return Verdict(
        f"of {CALLS} calls, tuning takes at most {shares[worst]:.0%} of the time of the others, {BUILDING} s of "
        f"building not counted ({worst}; promised: {LIMIT:.0%})",
        shares[worst] <= LIMIT,
    )


@benchmark("tuning-time", verdict=verdict)
def tuning_time(settings: Settings) -> Iterator[Line]:
    """A loop of 10^5 calls in a fresh process with an empty cache, its pauses for tuning, and the same loop later.

    The very first call stands beside them; what it takes beyond building counts as tuning.
    """
    for attr_class in settings.rows:
        name = attr_class.kernel_type.name.lower()
        for elements in SIZES[settings.tag] if ordinary_calls_of(attr_class, 8) else ():
            with empty_cache() as cache:
                found = run(__name__, "child", name, elements, cache=cache, JITKERNELS_TUNE="auto")
            timings = {key: Timing(seconds, 0.0) for key, seconds in found.items()}
            yield Line(name, f"{elements} elements", timings)


class _Watched:
    """Stands for what Python does of an everyday function, and adds up how long it takes."""

    def __init__(self, function: Any) -> None:
        self.seconds = 0.0
        self._original: Callable[..., Any] = function.__self__.call
        function.__self__._context[Table.SLOW] = id(self)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        started = perf_counter()
        try:
            return self._original(*arguments, **named)
        finally:
            self.seconds += perf_counter() - started


def child(name: str, elements: int) -> dict[str, float]:
    """Seconds of the first call, of the loop after it, of its pauses, and of the quicker of two more such loops."""
    function, arguments = getattr(jk, name), ordinary_calls_of(row(name), elements)[0].arguments

    def loop(calls: int) -> tuple[float, int]:
        started = perf_counter()
        for done in range(1, calls + 1):
            function(*arguments)
            if done % 1000 == 0 and perf_counter() - started > MOST_SECONDS:
                break
        return perf_counter() - started, done

    first = loop(1)[0]
    watched = _Watched(function)
    cold, calls = loop(CALLS)
    paused = watched.seconds
    warm = min(loop(calls)[0] for _ in range(2))
    return {"first call": first, "first loop": cold, "pauses": paused, "warm loop": warm}
