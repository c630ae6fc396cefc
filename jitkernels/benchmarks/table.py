"""The table of kernels: everything that computes an attr here: implementations, the selection, peers."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, peers_of
from jitkernels.benchmarks.suite import Line
from jitkernels.dispatch.kernel import Kernel, kernel_of
from jitkernels.dispatch.kernel_cache import KernelFuncs, get_all_candidates
from jitkernels.tuning.thread_wakeup_cost import thread_wakeup_price
from jitkernels.tuning.timer import Timing, measure

PICK = "pick"
CLOSE, EXTRA_ROUNDS = 1.15, 4
"""If the ratio of a pick to its baseline is below CLOSE, both are timed EXTRA_ROUNDS more times."""
TURN_OFFSET_BYTES = 5 * 4096 + 64
"""Bytes between the array addresses of consecutive turns: five pages and a cache line."""


@dataclass(frozen=True)
class Contest:
    """The calls that compute one attr, by name; `pick` names the selection."""

    calls: Mapping[str, Bound]
    pick: str
    implementations: tuple[str, ...]
    label: str


def contest(
    attr: KernelAttr, *, peers: bool, turn: int = 0, only: Collection[str] | None = None, without: Collection[str] = ()
) -> Contest:
    """Return everything that computes an attr here, all on the same arrays, whose offset in memory depends on `turn`.

    The selection has its implementation's name if it is the same variant, else the name "pick". `only`: the
    other implementations to include, by default all; `without`: the peers to exclude.
    """
    arrays = [_copy_at_offset(array, turn * TURN_OFFSET_BYTES) for array in attr.signature().sample()]
    selected = KernelFuncs.cache().at(attr)
    candidates = get_all_candidates(attr, only)
    calls = {name: partial(function, *arrays) for name, function in candidates.items()}
    behind = kernel_of(selected)
    pick = next((name for name, call in calls.items() if _runs_same_code(kernel_of(call.func), behind)), PICK)
    calls.setdefault(pick, partial(selected, *arrays))
    implementations = tuple(calls)
    for name, candidate in peers_of(type(attr)).items() if peers else ():
        call = None if name in without else candidate.bound(attr, *arrays)
        if call is not None:
            calls[name] = call
    return Contest(calls, pick, implementations, behind.implementation if behind else "")


def _runs_same_code(first: Kernel | None, second: Kernel | None) -> bool:
    """Return whether two kernels of an attr run the same code."""
    if first is None or second is None:
        return False
    return (first.implementation, first.variant) == (second.implementation, second.variant)


def _copy_at_offset(array: AnyArray, behind: int) -> AnyArray:
    """Return a copy of the array at an offset of `behind` bytes from an alignment boundary; the array itself for 0."""
    if not behind:
        return array
    room = np.empty(array.nbytes + behind, np.uint8)
    other: AnyArray = room[behind:].view(array.dtype).reshape(array.shape)
    other[...] = array
    return other


def time_calls(
    calls: Mapping[str, Bound],
    *,
    seconds: float,
    rounds: tuple[int, int] = (3, 21),
    clock: Callable[[], float] = perf_counter,
) -> dict[str, Timing]:
    """Time calls interleaved with the package's timer, without their argument binding."""
    kernels = {name: kernel_of(call.func) for name, call in calls.items()}
    threaded = {name: kernel.variant.get("parallel") for name, kernel in kernels.items() if kernel}
    return measure(calls, threaded=threaded, budget=seconds, rounds=rounds, clock=clock, warm=True)


def line(
    attr: KernelAttr,
    case: str,
    *,
    peers: bool,
    seconds: float,
    turn: int = 0,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Line:
    """Return the line of one attr. The wake-up cost of threads is measured for the selection and its rivals."""
    entries = contest(attr, peers=peers, turn=turn, only=only, without=without)
    timings = time_calls(entries.calls, seconds=seconds)
    rivals = {name: timings[name] for name in entries.implementations}
    price = thread_wakeup_price(rivals, entries.calls)
    timings |= {name: replace(timing, price=price) for name, timing in rivals.items() if timing.threaded}
    return Line(attr.name, case, timings, entries.pick, entries.implementations, detail=entries.label)


def settled(look: Callable[[int], Line], against: str | None) -> Line:
    """Return the line of the first turn; if it is close to `against` or to the best, merge it with further turns.

    Another program may have used the core, and in the outer caches the time varies by a tenth with array addresses. The
    minimum of each timing counts, as it does within a turn.
    """
    result = look(0)
    for turn in range(1, EXTRA_ROUNDS + 1):
        if (result.speed_over(against or result.best_other) or CLOSE) < CLOSE:
            again = look(turn).timings
            least = {
                name: min(timing, again.get(name, timing), key=lambda candidate: candidate.seconds)
                for name, timing in result.timings.items()
            }
            result = replace(result, timings=least)
    return result


def settled_calls(group: str, case: str, calls: Mapping[str, Bound], seconds: float) -> Line:
    """Return the settled line of short calls by jitkernels and NumPy, which have their arrays bound."""

    def look(_: int) -> Line:
        return Line(group, case, time_calls(calls, seconds=seconds, rounds=(3, 15)), "jitkernels")

    return settled(look, "numpy")


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def speeds(lines: Sequence[Line], against: str) -> str:
    """Format the speedup of the selection over a baseline, over all lines."""
    ratios = [ratio for line in lines if (ratio := line.speed_over(against)) is not None]
    if not ratios:
        return f"nothing to compare with {against}"
    return f"over {against}: geometric mean {geometric_mean(ratios):.2f}, lowest {min(ratios):.2f}"


def regrets(lines: Sequence[Line]) -> tuple[float, float]:
    """Return the median and 95th percentile of the regret."""
    values = [line.regret for line in lines if line.regret is not None]
    return (float(np.median(values)), float(np.percentile(values, 95))) if values else (math.nan, math.nan)
