"""``jitkernels bench first-call``: cost of the first calls of a process with an empty cache.

Each process takes one size and calls every everyday function in turn, in a rotated order; with the tag "full" there is
a process for every size and every first function.
"""

from collections.abc import Iterator, Sequence
from time import perf_counter

import jitkernels as jk
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.benchmarks.processes import empty_cache, run
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

EXPONENTS = tuple(range(3, 25))
LIMITS = {"first": 0.8, "further": 0.35}
EXTRA_PROCESSES = 2
"""Additional processes, each with an empty cache, if a call takes longer than promised."""


def verdict(lines: Sequence[Line]) -> Verdict:
    slowest = {"first": (0.0, ""), "further": (0.0, "")}
    for line in lines:
        seconds = line.timings["beyond"].seconds
        slowest[line.detail] = max(slowest[line.detail], (seconds, f"{line.case} of {line.group}"))
    words = [
        f"{kind} function of a process at most {seconds:.2f} s beyond the computation ({where}; "
        f"promised: {LIMITS[kind]} s)"
        for kind, (seconds, where) in slowest.items()
    ]
    return Verdict("; ".join(words), all(seconds <= LIMITS[kind] for kind, (seconds, _) in slowest.items()))


@benchmark("first-call", verdict=verdict)
def first_call(settings: Settings) -> Iterator[Line]:
    """First calls of fresh processes with an empty cache, every everyday function, 2^3 to 2^24 elements."""
    names = [schema.kernel_type.name.lower() for schema in settings.schemas if ordinary_calls_of(schema, 8)]
    for number, exponent in enumerate(settings.limited(EXPONENTS)):
        starts = range(len(names)) if settings.tag == "full" else [number % len(names)]
        for start in starts:
            order = names[start:] + names[:start]
            measurements = _in_fresh_processes(order, exponent, 0 if settings.is_tiny else EXTRA_PROCESSES)
            for name, (first, again) in measurements.items():
                times = {"first call": first, "computation": again, "beyond": _beyond(first, again)}
                timings = {key: Timing(seconds, 0.0) for key, seconds in times.items()}
                group = f"2^{exponent} elements, {order[0]} first"
                yield Line(group, name, timings, detail=_kind(name, order))


def _kind(name: str, order: Sequence[str]) -> str:
    return "first" if name == order[0] else "further"


def _beyond(first: float, again: float) -> float:
    return max(first - again, 0.0)


def _in_fresh_processes(order: Sequence[str], exponent: int, again: int) -> dict[str, tuple[float, float]]:
    """Return the first and a later call of each function, from the process with the smallest first call.

    A process has only one first call: if another program interrupted it, only another process can repeat it.
    """
    best: dict[str, tuple[float, float]] = {}
    for _ in range(1 + again):
        with empty_cache() as cache:
            for name, first, later in run(__name__, "child", order, exponent, cache=cache):
                pairs = best.get(name, (first, later)), (first, later)
                best[name] = min(pairs, key=lambda pair: _beyond(*pair))
        if all(_beyond(*pair) <= LIMITS[_kind(name, order)] for name, pair in best.items()):
            break
    return best


def child(names: Sequence[str], exponent: int) -> list[tuple[str, float, float]]:
    """Return for each function the seconds of its first call and of the fastest of three later ones."""
    measurements: list[tuple[str, float, float]] = []
    plain = {name: ordinary_calls_of(op_schema(name), 1 << exponent)[0].bind(getattr(jk, name)) for name in names}
    for name, call in plain.items():
        times = []
        for _ in range(4):
            started = perf_counter()
            call()
            times.append(perf_counter() - started)
        measurements.append((name, times[0], min(times[1:])))
    return measurements
