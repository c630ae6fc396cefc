"""Earned tuning: calls pay for the measurements that may make them faster.

A miss takes what is known at once and never waits for a measurement. Each compiled context of a kernel then
counts its calls down, which costs nothing, and when its `Account` is due it is settled: the calls are credited
with what they cost, to the ledger of the attr's tuning class, and as many candidates are built and measured as
that pays for. So tuning never takes longer than the calls have taken.
"""

import math
from time import perf_counter

import numpy as np

from jitkernels import locks, machine
from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import Choice, choose_again, has_newcomers, tuning_mode
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.ledger import SAFETY, Ledger, ledger_of
from jitkernels.native.code import LOAD
from jitkernels.signature import AnyArray, Array
from jitkernels.tuning.classes import (
    MOST_MEASURED,
    class_of,
    has_elements,
    least_seconds,
    nbytes,
    share_of_smallest,
    smallest_member,
)

LEAST_CALL = 3e-8
"""Seconds of a call that does nothing."""
LEAST_ROUND = 5e-3
"""Seconds of calls between two settlements at least."""
MOST_CALLS = 1 << 40


def open_account(attr: KernelAttr, choice: Choice) -> "Account | None":
    """An account for a kernel that was chosen for an attr, or None where measuring is not wanted or done.

    Cheap: nothing is read, built or measured.
    """
    if tuning_mode() != "auto" or choice.rule == "pinned" or not machine.has_compiler():
        return None
    if choice.record and choice.record.complete and not has_newcomers(attr, choice.record):
        return None
    if not has_elements(attr) or nbytes(class_of(attr)) > MOST_MEASURED:
        return None
    return Account(attr, choice)


class Account:
    """What the calls of one kernel have paid: `settle` is due after `calls` further ones, never if that is 0."""

    def __init__(self, attr: KernelAttr, choice: Choice) -> None:
        self._attr = attr
        self._choice = choice
        self._ledger = ledger_of(attr)
        self._contests = self._ledger.contests
        self._seconds = 0.0
        # The first settlement finds out what a call costs. Until then the fastest imaginable machine is assumed.
        share = share_of_smallest(attr) if choice.for_class else 1.0
        guess = LEAST_CALL + share * least_seconds(attr)
        self.calls = _calls_for(SAFETY * (LOAD + 8e-9 * nbytes(attr)), guess)

    def settle(self) -> bool:
        """Credit the calls and measure what they pay for; True if the attr has another choice now.

        After True this account has done its work, and the new choice is to have one of its own.
        """
        measuring_now = locks.measuring
        if not measuring_now.acquire(blocking=False):
            return False  # another thread measures, and these calls go uncredited
        started = perf_counter()
        ledger = self._ledger
        try:
            self._seconds = self._seconds or _seconds_per_call(self._attr, self._choice)
            ledger.earned += self.calls * self._seconds
            if self._contests == ledger.contests:
                ledger.buy(self._choice, self._seconds, started)
            changed = self._contests != ledger.contests and self._is_overruled()
            self._contests = ledger.contests
            return changed
        finally:
            ledger.spent += perf_counter() - started
            self.calls = self._further(ledger)
            measuring_now.release()

    def _is_overruled(self) -> bool:
        now = choose_again(self._attr, self._choice)
        return (now.implementation, now.variant) != (self._choice.implementation, self._choice.variant)

    def _further(self, ledger: Ledger) -> int:
        """How many more calls pay for what is to be bought next; 0 if there is nothing left to buy."""
        if not ledger.open or not self._seconds:
            return 0
        return _calls_for(
            SAFETY * (ledger.spent + ledger.price(self._seconds)) - ledger.earned, self._seconds
        )


def _watch(kernel: Kernel, choice: Choice) -> None:
    """Count the calls of a kernel that was picked, and let it become what measures best."""
    account = open_account(kernel.attr, choice)
    if account is None:
        return
    accounts = [account]

    def due() -> int:
        if not accounts[-1].settle():
            return accounts[-1].calls
        now = choose_again(kernel.attr, choice)
        kernel.become(Kernel(kernel.attr, now.implementation, now.variant))
        kernel.rule = now.rule
        following = open_account(kernel.attr, now)
        if following is None:
            return 0
        accounts.append(following)
        return following.calls

    kernel.watch(account.calls, due)


KernelFuncs.when_picked(_watch)


def _calls_for(cost: float, seconds: float) -> int:
    return min(MOST_CALLS, math.ceil(max(cost, LEAST_ROUND) / seconds))


def _seconds_per_call(attr: KernelAttr, choice: Choice) -> float:
    """What a call of the present kernel costs, from a look of less than a millisecond."""
    called = (
        smallest_member(attr) if choice.for_class else attr
    )  # nobody knows which sizes, so the cheapest counts
    kernel = Kernel(called, choice.implementation, choice.variant)
    with locks.making:  # for which a fork waits
        from jitkernels.tuning.timer import Stopwatch
    watch = Stopwatch(kernel.callable, [_some(array) for array in called.signature().arrays])
    taken = min(watch.call(), watch.call())
    if taken < 1e-4:
        watch.turn(3e-4)
        taken = min(taken, watch.seconds)
    return max(taken, LEAST_CALL)


def _some(array: Array) -> AnyArray:
    """An array of numbers of the domain. None are drawn: that takes longer, and the import of NumPy's generators."""
    numbers = np.linspace(*array.domain, 61, endpoint=False).astype(array.dtype)
    return np.resize(numbers, array.shape)
