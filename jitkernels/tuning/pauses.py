"""What threads are worth to a user: calls after a pause, and calls in a row that begin after one.

Timed back to back on an idle machine, threads look better than they are. Between the calls of a program there
is other work, the threads fall asleep, and waking them costs 50 us or, where another process holds the core or
the machine is virtual, milliseconds. A serial kernel has no such tail. So the two run as they would in a
program, in turns, and means are compared, in which tails count.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from time import perf_counter
from typing import Any

from jitkernels.tuning.timer import wait_until_quiet

ROW_SECONDS = 2e-3
"""A row of calls lasts about so long."""
LONGEST_ROW = 16


def worst_ratio(
    threaded: Callable[..., Any], serial: Callable[..., Any], arrays: Sequence[Any], *, turns: int = 9
) -> float:
    """Seconds of the threaded call over those of the serial one, after a pause or in a row, whichever is worse.

    Of each kind the worst third of the turns is left out on both sides: now and then anything is disturbed.
    """
    seen: tuple[list[list[float]], list[list[float]]] = ([], [])
    count = 0
    for _ in range(turns):
        for function, rows in zip((threaded, serial), seen, strict=True):
            wait_until_quiet()
            row = _row(function, arrays, count or LONGEST_ROW)
            count = count or len(row)
            rows.append(row)
    first, following = (
        [_mean([statistic(row) for row in rows]) for rows in seen] for statistic in (_first, _following)
    )
    return max(first[0] / first[1], following[0] / following[1])


def _row(function: Callable[..., Any], arrays: Sequence[Any], count: int) -> list[float]:
    """Seconds of calls in a row: two at least, then no more than fit in the time of a row."""
    taken: list[float] = []
    while len(taken) < 2 or (len(taken) < count and sum(taken) < ROW_SECONDS):
        started = perf_counter()
        function(*arrays)
        taken.append(perf_counter() - started)
    return taken


def _first(row: list[float]) -> float:
    return row[0]


def _following(row: list[float]) -> float:
    return fmean(row[1:])


def _mean(found: list[float]) -> float:
    return fmean(sorted(found)[: -(-2 * len(found) // 3)])
