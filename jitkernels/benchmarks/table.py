"""The one table of kernels: what computes an attr here, side by side: implementations, the pick, peers."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr
from jitkernels.benchmark.suite import Line
from jitkernels.kernel import Kernel, kernel_of
from jitkernels.kernel_funcs import KernelFuncs, get_all_candidates
from jitkernels.peers import Bound, peers_of
from jitkernels.signature import AnyArray
from jitkernels.tuning.pauses import price_of_threads
from jitkernels.tuning.timer import Timing, measure

PICK = "pick"
CLOSE, AGAIN = 1.15, 4
"""Where a pick comes out so near to what it is compared with, or behind it, both are timed so many times again."""
APART = 5 * 4096 + 64
"""Bytes between the places where arrays lie in one look and in the next."""


@dataclass(frozen=True)
class Contest:
    """The calls that compute one attr, by name; `pick` names the one that users get."""

    calls: Mapping[str, Bound]
    pick: str
    implementations: tuple[str, ...]
    label: str


def contest(
    attr: KernelAttr,
    *,
    peers: bool,
    turn: int = 0,
    only: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Contest:
    """Everything that computes an attr here, all on the same arrays, which lie elsewhere in each turn.

    The pick stands under its implementation's name where it is the same variant of it, else under "pick". `only`:
    the implementations besides it that take part, by default all; `without`: the peers that do not.
    """
    arrays = [_placed(array, turn * APART) for array in attr.signature().sample()]
    picked = KernelFuncs.cache().at(attr)
    candidates = get_all_candidates(attr, only)
    calls = {name: partial(function, *arrays) for name, function in candidates.items()}
    behind = kernel_of(picked)
    pick = next((name for name, call in calls.items() if _is_same(kernel_of(call.func), behind)), PICK)
    calls.setdefault(pick, partial(picked, *arrays))
    implementations = tuple(calls)
    for name, found in peers_of(type(attr)).items() if peers else ():
        call = None if name in without else found.bound(attr, *arrays)
        if call is not None:
            calls[name] = call
    return Contest(calls, pick, implementations, behind.implementation if behind else "")


def _is_same(one: Kernel | None, other: Kernel | None) -> bool:
    """Whether two kernels of an attr are computed in the same way."""
    if one is None or other is None:
        return False
    return (one.implementation, one.variant) == (other.implementation, other.variant)


def _placed(array: AnyArray, behind: int) -> AnyArray:
    """The same so many bytes behind where memory begins; as it is for 0."""
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
    """Time calls against each other by the one timer, without what binds them to their arguments."""
    functions: dict[str, Callable[..., Any]] = {name: call.func for name, call in calls.items()}
    arguments = {name: call.args for name, call in calls.items()}
    named = {name: call.keywords for name, call in calls.items()}
    kernels = {name: kernel_of(function) for name, function in functions.items()}
    threaded = {name: kernel.variant.get("parallel") for name, kernel in kernels.items() if kernel}
    return measure(
        functions,
        arguments,
        named=named,
        threaded=threaded,
        budget=seconds,
        rounds=rounds,
        clock=clock,
        warm=True,
    )


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
    """The line of one attr. What users pay for threads is looked at among those that could have been the pick."""
    found = contest(attr, peers=peers, turn=turn, only=only, without=without)
    timings = time_calls(found.calls, seconds=seconds)
    rivals = {name: timings[name] for name in found.implementations}
    price = price_of_threads(rivals, found.calls)
    timings |= {name: replace(timing, price=price) for name, timing in rivals.items() if timing.threaded}
    return Line(attr.name, case, timings, found.pick, found.implementations, detail=found.label)


def settled(look: Callable[[int], Line], against: str | None) -> Line:
    """What `look` comes to in its first turn; where that is close to `against`, or to the best, it takes more of them.

    Another program may have had the core meanwhile, and in the outer caches a tenth hangs on where arrays lie. The
    least of each counts, as it does in one look.
    """
    found = look(0)
    for turn in range(1, AGAIN + 1):
        if (found.speed_over(against or found.best_other) or CLOSE) < CLOSE:
            again = look(turn).timings
            least = {
                name: min(timing, again.get(name, timing), key=lambda one: one.seconds)
                for name, timing in found.timings.items()
            }
            found = replace(found, timings=least)
    return found


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def speeds(lines: Sequence[Line], against: str) -> str:
    """How much faster than some timing the pick is, over lines, in words."""
    found = [ratio for line in lines if (ratio := line.speed_over(against)) is not None]
    if not found:
        return f"nothing to compare with {against}"
    return f"over {against}: geometric mean {geometric_mean(found):.2f}, lowest {min(found):.2f}"


def regrets(lines: Sequence[Line]) -> tuple[float, float]:
    """Median and 95th percentile of the regret."""
    found = [line.regret for line in lines if line.regret is not None]
    return (float(np.median(found)), float(np.percentile(found, 95))) if found else (math.nan, math.nan)
