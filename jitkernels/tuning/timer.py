"""The one timer: tuner and benchmarks measure with it and nothing else.

Candidates are interleaved in rounds, so that a disturbance from outside hits them all alike, and the
minimum over the rounds counts, because whatever is not the code itself only ever adds time.

Threads of OpenMP and OpenBLAS go on spinning for 10 to 100 ms after their work. Where candidates use
threads, each waits until those of the one before have gone to sleep, or it would be timed on a busy machine.
"""

import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time, sleep
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the minimum over rounds, and the spread: how far the median lies above it."""

    seconds: float
    spread: float


def measure(
    calls: Mapping[str, Callable[..., Any]],
    arguments: Mapping[str, Sequence[Any]] | Sequence[Any],
    *,
    named: Mapping[str, Mapping[str, Any]] | None = None,
    budget: float = 0.2,
    rounds: tuple[int, int] = (3, 15),
) -> dict[str, Timing]:
    """Time callables against each other.

    `arguments` is what each is called with, or that by name of the callable; `named` are keyword arguments
    by name of the callable. `budget` bounds the whole in seconds, beyond
    one warm-up call each and the fewest of `rounds`, which are (fewest, most).
    """
    timers: dict[str, timeit.Timer] = {}
    numbers: dict[str, int] = {}
    spinning: set[str] = set()
    fewest, most = rounds
    share = budget / max(len(calls), 1) / (most + 1)
    for name, function in calls.items():
        given = arguments[name] if isinstance(arguments, Mapping) else arguments
        names = [f"a{i}" for i in range(len(given))]
        values: dict[str, Any] = {"function": function, **dict(zip(names, given, strict=True))}
        for keyword, value in (named or {}).get(name, {}).items():
            names.append(f"{keyword}={keyword}")
            values[keyword] = value
        timers[name] = timeit.Timer(f"function({', '.join(names)})", globals=values)
        numbers[name] = 1 if timers[name].timeit(1) > share else _calls_in(timers[name], share)
        if _occupies_other_cores(timers[name], numbers[name]) and len(calls) > 1:
            spinning.add(name)
            _wait_until_quiet()
    samples: dict[str, list[float]] = {name: [] for name in calls}
    started = perf_counter()
    for done in range(most):
        if done >= fewest and perf_counter() - started > budget:
            break
        for name, timer in timers.items():
            samples[name].append(timer.timeit(numbers[name]) / numbers[name])
            if name in spinning:
                _wait_until_quiet()
    return {name: _timing(sorted(found)) for name, found in samples.items()}


def _calls_in(timer: timeit.Timer, seconds: float) -> int:
    """How many calls fill that time, from runs that grow until the clock can read them."""
    number = 1
    while True:
        taken = timer.timeit(number)
        if taken > min(seconds, 2e-5) or number >= 1 << 20:
            return max(1, int(number * seconds / max(taken, 1e-9)))
        number *= 4


def _occupies_other_cores(timer: timeit.Timer, number: int) -> bool:
    """Whether the process uses more processor time in a run than the run lasts."""
    used = process_time()
    taken = timer.timeit(number)
    return process_time() - used > 1.2 * taken + 1e-4


def _wait_until_quiet(longest: float = 0.3) -> None:
    """Sleep until this process uses no processor time while it sleeps."""
    deadline = perf_counter() + longest
    while perf_counter() < deadline:
        used = process_time()
        sleep(0.002)
        if process_time() - used < 5e-4:
            return


def _timing(found: list[float]) -> Timing:
    return Timing(found[0], found[len(found) // 2] - found[0])
