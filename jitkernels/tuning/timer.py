"""The one timer: tuner and benchmarks measure with it and nothing else.

Candidates take turns in rounds, so that a disturbance from outside hits them all alike, and the minimum
counts, because whatever is not the code itself only ever adds time.

Threads of OpenMP and OpenBLAS go on spinning for 10 to 100 ms after their work, and may take milliseconds to
come back and find cores of their own once they sleep. Calls long enough to use threads are therefore timed
awake, in fewer and longer turns, and each candidate waits until the threads of the one before are asleep.
"""

import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time, sleep
from typing import Any

PARTS = 16
"""Parts that a candidate's turn in a round is timed in, so that a short disturbance spoils only some."""
THREADED_SECONDS = 2e-5
"""Calls longer than this may use threads."""


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
    timers = {name: _timer(name, function, arguments, named or {}) for name, function in calls.items()}
    fewest, most = rounds
    threaded = len(calls) > 1 and max(timer.timeit(1) for timer in timers.values()) > THREADED_SECONDS
    turns = fewest if threaded else most
    share = budget / max(len(calls), 1) / (turns + 1)
    numbers: dict[str, int] = {}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    started = perf_counter()
    for done in range(turns):
        if done >= fewest and perf_counter() - started > budget:
            break
        for name, timer in timers.items():
            if threaded:
                _wake(timer)
            number = numbers.get(name) or _calls_in(timer, share)
            if not threaded:
                numbers[name] = number  # else again in each turn: threads may have been asleep this time
            part = max(1, number // PARTS)
            samples[name] += [taken / part for taken in timer.repeat(min(PARTS, number), part)]
            if threaded:
                _wait_until_quiet()
    return {name: _timing(sorted(found)) for name, found in samples.items()}


def _timer(
    name: str,
    function: Callable[..., Any],
    arguments: Mapping[str, Sequence[Any]] | Sequence[Any],
    named: Mapping[str, Mapping[str, Any]],
) -> timeit.Timer:
    """A timer of calls with these arguments, each a local variable so that a call costs what a user's does."""
    given = arguments[name] if isinstance(arguments, Mapping) else arguments
    values: dict[str, Any] = {f"a{i}": value for i, value in enumerate(given)}
    listed = ", ".join([*values, *(f"{keyword}={keyword}" for keyword in named.get(name, {}))])
    return timeit.Timer(
        f"function({listed})", globals={"function": function, **values, **named.get(name, {})}
    )


def _calls_in(timer: timeit.Timer, seconds: float) -> int:
    """How many calls fill that time, from runs that grow until the clock can read them."""
    number = 1
    while True:
        taken = timer.timeit(number)
        if taken > min(seconds, 2e-5) or number >= 1 << 20:
            return max(1, int(number * seconds / max(taken, 1e-9)))
        number *= 4


def _goes_on_spinning() -> bool:
    """Whether this process uses processor time while it sleeps, as threads do that wait for more work."""
    used = process_time()
    sleep(0.002)
    return process_time() - used > 5e-4


def _wake(timer: timeit.Timer, least: float = 0.01, most: float = 0.1) -> None:
    """Run without timing until threads are awake and have cores of their own: a dozen calls, the last ones alike."""
    started = perf_counter()
    fastest = last = timer.timeit(1)
    count = 1
    while (spent := perf_counter() - started) < most and (
        spent < least or count < 12 or last > 1.5 * fastest
    ):
        last = timer.timeit(1)
        fastest = min(fastest, last)
        count += 1


def _wait_until_quiet(longest: float = 0.3) -> None:
    """Sleep until this process uses no processor time while it sleeps."""
    deadline = perf_counter() + longest
    while perf_counter() < deadline and _goes_on_spinning():
        pass


def _timing(found: list[float]) -> Timing:
    return Timing(found[0], found[len(found) // 2] - found[0])
