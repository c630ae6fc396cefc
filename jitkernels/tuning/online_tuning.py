"""Online tuning: calls pay for the measurements that may make them faster.

A miss uses the best known choice at once and never waits for a measurement. Each compiled context of a kernel then
counts its calls down, which costs nothing, and when its `Account` is due it is settled: the calls are credited with
their cost, to the budget of the attr's size class, and as many candidates are built and measured as that pays for.
So tuning never takes longer than the calls have taken.
"""

import math
from time import perf_counter

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray, Array
from jitkernels.core import cpu_target, fork_locks
from jitkernels.dispatch.kernel import Kernel
from jitkernels.runtime.loading.compiled_code import LOAD
from jitkernels.selection.select import Choice, has_unmeasured_implementations, reselect, tuning_mode
from jitkernels.selection.size_classes import (
    MAX_MEASURED,
    class_of,
    has_elements,
    least_seconds,
    nbytes,
    share_of_smallest,
    smallest_member,
)
from jitkernels.tuning.tuning_budget import SAFETY, TuningBudget, tuning_budget_of

MIN_CALL = 3e-8
"""Seconds of a call that does nothing."""
MIN_SETTLEMENT_SECONDS = 5e-3
"""Seconds of calls between two settlements, at least."""
MAX_CALLS_TO_SETTLEMENT = 1 << 40


def open_account(attr: KernelAttr, choice: Choice) -> "Account | None":
    """An account for a kernel selected for an attr, or None where tuning is disabled or complete.

    Cheap: nothing is read, built or measured.
    """
    if tuning_mode() != "auto" or choice.rule == "pinned" or not cpu_target.has_compiler():
        return None
    if choice.record and choice.record.complete and not has_unmeasured_implementations(attr, choice.record):
        return None
    if not has_elements(attr) or nbytes(class_of(attr)) > MAX_MEASURED:
        return None
    return Account(attr, choice)


class Account:
    """The credit of one kernel's calls: `settle` is due after `calls` further ones, never if that is 0."""

    def __init__(self, attr: KernelAttr, choice: Choice) -> None:
        self._attr = attr
        self._choice = choice
        self._budget = tuning_budget_of(attr)
        self._contests = self._budget.contests
        self._seconds = 0.0
        # The first settlement measures the cost of a call. Until then a lower bound is assumed.
        share = share_of_smallest(attr) if choice.for_class else 1.0
        guess = MIN_CALL + share * least_seconds(attr)
        self.calls = _calls_for(SAFETY * (LOAD + 8e-9 * nbytes(attr)), guess)

    def settle(self) -> bool:
        """Credit the calls and measure the candidates they pay for; True if another choice is better now.

        After True this account is closed, and the new choice gets one of its own.
        """
        measuring_now = fork_locks.measure_lock
        if not measuring_now.acquire(blocking=False):
            return False  # another thread measures: these calls are not credited
        started = perf_counter()
        budget = self._budget
        try:
            self._seconds = self._seconds or _seconds_per_call(self._attr, self._choice)
            budget.earned += self.calls * self._seconds
            if self._contests == budget.contests:
                budget.buy(self._choice, self._seconds, started)
            changed = self._contests != budget.contests and self._is_overruled()
            self._contests = budget.contests
            return changed
        finally:
            budget.spent += perf_counter() - started
            self.calls = self._further(budget)
            measuring_now.release()

    def _is_overruled(self) -> bool:
        now = reselect(self._attr, self._choice)
        return (now.implementation, now.variant) != (self._choice.implementation, self._choice.variant)

    def _further(self, budget: TuningBudget) -> int:
        """How many more calls pay for the next measurement; 0 if all candidates are measured."""
        if not budget.open or not self._seconds:
            return 0
        return _calls_for(SAFETY * (budget.spent + budget.price(self._seconds)) - budget.earned, self._seconds)


def watch(kernel: Kernel, choice: Choice) -> None:
    """Count the calls of a selected kernel, and replace its code by that of the fastest candidate."""
    account = open_account(kernel.attr, choice)
    if account is None:
        return
    accounts = [account]

    def due() -> int:
        if not accounts[-1].settle():
            return accounts[-1].calls
        now = reselect(kernel.attr, choice)
        kernel.replace_code(Kernel(kernel.attr, now.implementation, now.variant))
        kernel.rule = now.rule
        following = open_account(kernel.attr, now)
        if following is None:
            return 0
        accounts.append(following)
        return following.calls

    kernel.watch(account.calls, due)


def _calls_for(cost: float, seconds: float) -> int:
    return min(MAX_CALLS_TO_SETTLEMENT, math.ceil(max(cost, MIN_SETTLEMENT_SECONDS) / seconds))


def _seconds_per_call(attr: KernelAttr, choice: Choice) -> float:
    """The time of a call of the current kernel, measured in less than a millisecond."""
    called = smallest_member(attr) if choice.for_class else attr  # sizes are unknown: assume the cheapest
    kernel = Kernel(called, choice.implementation, choice.variant)
    with fork_locks.build_lock:  # a fork waits for the import
        from jitkernels.tuning.timer import Stopwatch
    watch = Stopwatch(kernel.callable, [_sample_array(array) for array in called.signature().arrays])
    seconds = min(watch.call(), watch.call())
    if seconds < 1e-4:
        watch.turn(3e-4)
        seconds = min(seconds, watch.seconds)
    return max(seconds, MIN_CALL)


def _sample_array(array: Array) -> AnyArray:
    """An array of numbers of the domain, without NumPy's random generators, whose import takes long."""
    numbers = np.linspace(*array.domain, 61, endpoint=False).astype(array.dtype)
    return np.resize(numbers, array.shape)
