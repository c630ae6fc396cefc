"""What threads are worth to a user: calls after a pause, and calls in a row that begin after one.

Timed back to back on an idle machine, threads look better than they are. Between the calls of a program there
is other work, the threads fall asleep, and waking them costs 50 us or, where another process holds the core or
the machine is virtual, milliseconds. A serial kernel has no such tail. So the two run as they would in a
program, in turns, and means are compared, in which tails count.
"""

from collections.abc import Callable, Mapping
from time import perf_counter, sleep
from typing import Any

from jitkernels.tuning.timer import Timing, fastest, wait_until_quiet

LONGEST_CALL = 2e-2
"""Seconds of a call beyond which waking threads is nothing to it."""

ROW_SECONDS = 2e-3
"""A row of calls lasts about so long."""
LONGEST_ROW = 16
MOST_WAKING = 2e-4
"""Seconds that waking threads takes at most. Where they save more and lose all the same, they had no cores of their own
for a while, as on a virtual machine, and are looked at again."""
AGAIN, APART = 4, 0.25
"""So many times, with so many seconds between."""


def price_of_threads(
    timings: Mapping[str, Timing],
    calls: Mapping[str, Callable[[], Any]],
    *,
    margin: float = 1.0,
    again: int = AGAIN,
) -> float:
    """How many times more than awake the calls that use threads cost a user, seen at the fastest of them.

    It is 1 where threads lose anyway: where even awake they are not faster than what is serial by `margin`.
    """
    threaded, serial = fastest(timings, True), fastest(timings, False)
    if threaded is None or serial is None or timings[serial].seconds > LONGEST_CALL:
        return 1.0
    awake = timings[threaded].seconds / timings[serial].seconds
    if awake * margin > 1:
        return 1.0
    ratio = _worst_ratio(calls[threaded], calls[serial])
    saved = timings[serial].seconds - timings[threaded].seconds * margin
    for _ in range(again if saved > MOST_WAKING else 0):
        if ratio * margin > 1:
            sleep(APART)
            ratio = min(ratio, _worst_ratio(calls[threaded], calls[serial]))
    return max(1.0, ratio / awake)


def _worst_ratio(threaded: Callable[[], Any], serial: Callable[[], Any], *, turns: int = 9) -> float:
    """Seconds of the threaded call over those of the serial one, after a pause or in a row, whichever is worse.

    Of each kind the worst third of the turns is left out on both sides: now and then anything is disturbed.
    """
    seen: tuple[list[list[float]], list[list[float]]] = ([], [])
    count = 0
    for _ in range(turns):
        for call, rows in zip((threaded, serial), seen, strict=True):
            wait_until_quiet()
            row = _row(call, count or LONGEST_ROW)
            count = count or len(row)
            rows.append(row)
    first, following = (
        [_without_worst([statistic(row) for row in rows]) for rows in seen]
        for statistic in (_first, _following)
    )
    return max(first[0] / first[1], following[0] / following[1])


def _row(call: Callable[[], Any], count: int) -> list[float]:
    """Seconds of calls in a row: two at least, then no more than fit in the time of a row."""
    taken: list[float] = []
    while len(taken) < 2 or (len(taken) < count and sum(taken) < ROW_SECONDS):
        started = perf_counter()
        call()
        taken.append(perf_counter() - started)
    return taken


def _first(row: list[float]) -> float:
    return row[0]


def _following(row: list[float]) -> float:
    return _mean(row[1:])


def _mean(found: list[float]) -> float:
    return sum(found) / len(found)


def _without_worst(found: list[float]) -> float:
    """The mean of all but the worst third."""
    return _mean(sorted(found)[: -(-2 * len(found) // 3)])
