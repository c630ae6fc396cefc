"""The cost of threads to a user: calls after a pause, and bursts of calls that begin after one.

Timed back to back on an idle machine, threads look better than they are. Between the calls of a program there is other
work, the threads fall asleep, and waking them costs 50 us or, where another process holds the core or the machine is
virtual, milliseconds. A serial kernel has no such tail. So the two run as they would in a program, alternating, and
means are compared, which include the tails.
"""

from collections.abc import Callable, Mapping
from time import perf_counter, sleep
from typing import Any

from jitkernels.tuning.timer import Timing, fastest, wait_until_quiet

LONGEST_CALL = 2e-2
"""Seconds of a call beyond which the time of waking threads is negligible."""

ROW_SECONDS = 2e-3
"""Seconds of a burst of calls, about."""
LONGEST_ROW = 16
MAX_WAKING = 2e-4
"""Seconds that waking threads takes at most.

Threads that save more and lose all the same had no cores of their own for a while, as on a virtual machine, and are
measured again.
"""
EXTRA_MEASUREMENTS, SECONDS_BETWEEN = 4, 0.25
"""Further measurements, and the seconds between them."""


def thread_wakeup_price(
    timings: Mapping[str, Timing],
    calls: Mapping[str, Callable[[], Any]],
    *,
    margin: float = 1.0,
    again: int = EXTRA_MEASUREMENTS,
) -> float:
    """How many times more the fastest parallel call costs a user than when its threads are awake.

    It is 1 where threads lose anyway: where even awake they are not faster than the serial candidates by `margin`.
    """
    threaded, serial = fastest(timings, True), fastest(timings, False)
    if threaded is None or serial is None or timings[serial].seconds > LONGEST_CALL:
        return 1.0
    awake = timings[threaded].seconds / timings[serial].seconds
    if awake * margin > 1:
        return 1.0
    ratio = _worst_ratio(calls[threaded], calls[serial])
    saved = timings[serial].seconds - timings[threaded].seconds * margin
    for _ in range(again if saved > MAX_WAKING else 0):
        if ratio * margin > 1:
            sleep(SECONDS_BETWEEN)
            ratio = min(ratio, _worst_ratio(calls[threaded], calls[serial]))
    return max(1.0, ratio / awake)


def _worst_ratio(threaded: Callable[[], Any], serial: Callable[[], Any], *, turns: int = 9) -> float:
    """Seconds of the threaded call over those of the serial one, after a pause or in a burst, whichever is worse.

    In each case the worst third of the samples is dropped on both sides, as disturbances.
    """
    seen: tuple[list[list[float]], list[list[float]]] = ([], [])
    count = 0
    for _ in range(turns):
        for call, bursts in zip((threaded, serial), seen, strict=True):
            wait_until_quiet()
            burst = _burst(call, count or LONGEST_ROW)
            count = count or len(burst)
            bursts.append(burst)
    first, following = (
        [_without_worst([statistic(burst) for burst in bursts]) for bursts in seen]
        for statistic in (_first_of, _mean_of_following)
    )
    return max(first[0] / first[1], following[0] / following[1])


def _burst(call: Callable[[], Any], count: int) -> list[float]:
    """Seconds of the calls of a burst: at least two, then no more than fit in `ROW_SECONDS`."""
    seconds: list[float] = []
    while len(seconds) < 2 or (len(seconds) < count and sum(seconds) < ROW_SECONDS):
        started = perf_counter()
        call()
        seconds.append(perf_counter() - started)
    return seconds


def _first_of(row: list[float]) -> float:
    return row[0]


def _mean_of_following(row: list[float]) -> float:
    return _mean(row[1:])


def _mean(seconds: list[float]) -> float:
    return sum(seconds) / len(seconds)


def _without_worst(means: list[float]) -> float:
    """The mean of all but the worst third."""
    return _mean(sorted(means)[: -(-2 * len(means) // 3)])
