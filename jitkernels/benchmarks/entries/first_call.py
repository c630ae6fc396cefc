"""``jitkernels bench first-call``: what the first calls of a process with an empty cache cost.

Each process takes one size and calls every everyday function in turn, beginning with another one each time; with
the tag "full" there is a process for every size and every function to begin with.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import jitkernels as jk
from jitkernels.benchmark.processes import empty_cache, run
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.peers import ordinary_calls_of
from jitkernels.registry import row
from jitkernels.tuning.timer import Timing

EXPONENTS = tuple(range(3, 25))
LIMITS = {"first": 0.8, "further": 0.35}
AGAIN = 2
"""So many more processes are asked, each with a cache of its own, where a call took longer than promised."""


def verdict(lines: Sequence[Line]) -> Verdict:
    found = {"first": (0.0, ""), "further": (0.0, "")}
    for line in lines:
        seconds = line.timings["beyond"].seconds
        found[line.detail] = max(found[line.detail], (seconds, f"{line.case} of {line.group}"))
    words = [
        f"{kind} function of a process at most {seconds:.2f} s beyond the computation ({where}; "
        f"promised: {LIMITS[kind]} s)"
        for kind, (seconds, where) in found.items()
    ]
    return Verdict("; ".join(words), all(seconds <= LIMITS[kind] for kind, (seconds, _) in found.items()))


@benchmark("first-call", verdict=verdict)
def first_call(settings: Settings) -> Iterator[Line]:
    """First calls of fresh processes with an empty cache, every everyday function, 2^3 to 2^24 elements."""
    names = [row.kernel_type.name.lower() for row in settings.rows if ordinary_calls_of(row, 8)]
    for number, exponent in enumerate(EXPONENTS):
        starts = range(len(names)) if settings.tag == "full" else [number % len(names)]
        for start in starts:
            order = names[start:] + names[:start]
            found = _in_fresh_processes(order, exponent)
            for name, (first, again) in found.items():
                times = {"first call": first, "computation": again, "beyond": _beyond(first, again)}
                timings = {key: Timing(seconds, 0.0) for key, seconds in times.items()}
                group = f"2^{exponent} elements, {order[0]} first"
                yield Line(group, name, timings, detail=_kind(name, order))


def _kind(name: str, order: Sequence[str]) -> str:
    return "first" if name == order[0] else "further"


def _beyond(first: float, again: float) -> float:
    return max(first - again, 0.0)


def _in_fresh_processes(order: Sequence[str], exponent: int) -> dict[str, tuple[float, float]]:
    """Of each function the first call and a later one, as in the process where the first was quickest beside it.

    One first call is all that a process has: where another program had the core meanwhile, only another process tells.
    """
    found: dict[str, tuple[float, float]] = {}
    for _ in range(1 + AGAIN):
        with empty_cache() as cache:
            for name, first, again in run(__name__, "child", order, exponent, cache=cache):
                found[name] = min(
                    found.get(name, (first, again)), (first, again), key=lambda pair: _beyond(*pair)
                )
        if all(_beyond(*pair) <= LIMITS[_kind(name, order)] for name, pair in found.items()):
            break
    return found


def child(names: Sequence[str], exponent: int) -> list[tuple[str, float, float]]:
    """For each function the seconds of its first call and of the quickest of three later ones."""
    found: list[tuple[str, float, float]] = []
    plain: dict[str, tuple[Any, ...]] = {
        name: ordinary_calls_of(row(name), 1 << exponent)[0].arguments for name in names
    }
    for name, arguments in plain.items():
        times = []
        for _ in range(4):
            started = perf_counter()
            getattr(jk, name)(*arguments)
            times.append(perf_counter() - started)
        found.append((name, times[0], min(times[1:])))
    return found
