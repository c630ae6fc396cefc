"""Earned tuning: calls pay for the measurements that may make them faster.

A miss takes what is known at once and never waits for a measurement. Each compiled context of a kernel then
counts its calls down, which costs nothing, and when its `Account` is due it is settled: the calls are credited
with what they cost, to the account's tuning class, and as many candidates are built and measured as that pays
for. So tuning never takes longer than the calls have taken, and a program is never slower than twice what it
would be with the best kernel from the start, whatever it does.
"""

import math
import sys
from collections.abc import Sequence
from time import perf_counter

from jitkernels import measuring
from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import Choice, known_record, tuning_mode
from jitkernels.kernel import Kernel
from jitkernels.measuring import candidates, keep, reference
from jitkernels.native import cache
from jitkernels.native.threads import get_num_threads
from jitkernels.patience import saying
from jitkernels.registry import implementation
from jitkernels.tuning.classes import MOST_MEASURED, has_elements, measured_member, nbytes
from jitkernels.tuning.store import Record
from jitkernels.tuning.timer import Stopwatch
from jitkernels.tuning.tuner import Candidate, contest

SAFETY = 1.3
"""Calls have to have cost so many times the estimate of what is bought with them, because it is one."""
BUDGET = 0.02
"""Seconds of timing in one contest, which has few candidates."""
BUILD, FIRST_BUILD, LOAD = 0.45, 0.7, 0.002
"""Seconds of building a candidate, of importing the compiler before the first, and of loading one already built."""
DUEL = 0.1
"""Seconds of looking at threads as users see them."""
LEAST_CALL = 3e-8
"""Seconds of a call that does nothing."""
MOST_CALLS = 1 << 40


def open_account(attr: KernelAttr, choice: Choice) -> "Account | None":
    """An account for a kernel that was chosen for an attr, or None where measuring is not wanted or done.

    Cheap: nothing is read, built or measured.
    """
    if tuning_mode() != "auto" or choice.rule == "pinned" or (choice.record and choice.record.complete):
        return None
    if not has_elements(attr) or nbytes(attr.tuning_class()) > MOST_MEASURED:
        return None
    return Account(attr, choice)


class Account:
    """What the calls of one kernel have paid: `settle` is due after `calls` further ones, never if that is 0."""

    def __init__(self, attr: KernelAttr, choice: Choice) -> None:
        self._attr = attr
        self._choice = choice
        self._ledger = _ledger_of(attr)
        self._contests = self._ledger.contests
        self._seconds: float | None = None
        # A first settlement only finds out what a call costs. Until then the fastest imaginable machine is assumed.
        guess = LEAST_CALL + nbytes(attr) / 1e11 + attr.operations() / 5e11
        self.calls = min(MOST_CALLS, math.ceil(SAFETY * (LOAD + 8e-9 * nbytes(attr)) / guess) + 3)

    def settle(self) -> bool:
        """Credit the calls and measure what they pay for; True if the class has been measured: choose again.

        After True this account has done its work and the new choice is to have one of its own.
        """
        ledger = self._ledger
        if not measuring.one_at_a_time.acquire(blocking=False):
            return False  # another thread measures; these calls are credited next time
        lock = measuring.one_at_a_time
        started = perf_counter()
        try:
            if self._seconds is None:
                self._seconds = _seconds_per_call(self._attr, self._choice)
            ledger.earned += self.calls * self._seconds
            if self._contests == ledger.contests:
                ledger.buy(self._attr, self._choice, self._seconds)
            lacking = (
                SAFETY * (ledger.spent + perf_counter() - started + ledger.price(self._seconds))
                - ledger.earned
            )
            self.calls = _calls_for(lacking / self._seconds) if ledger.open else 0
            return self._contests != ledger.contests
        finally:
            ledger.spent += perf_counter() - started
            lock.release()


def _calls_for(wanted: float) -> int:
    return max(1000, min(MOST_CALLS, math.ceil(wanted)))


def _seconds_per_call(attr: KernelAttr, choice: Choice) -> float:
    """What a call of the present kernel costs, from a look of less than a millisecond."""
    kernel = Kernel(attr, choice.implementation, choice.variant)
    watch = Stopwatch(kernel.callable, attr.signature().sample())
    taken = min(watch.call(), watch.call())
    if taken < 1e-4:
        watch.turn(3e-4)
        taken = min(taken, watch.seconds)
    return max(taken, LEAST_CALL)


class Ledger:
    """What the calls of a tuning class have paid and what measuring it has cost, and who is yet to be measured."""

    def __init__(self, attr: KernelAttr) -> None:
        self.earned = 0.0
        self.spent = 0.0
        self.contests = 0
        self._slowness = 1.0  # of this machine at this time, against the estimates
        self._member = measured_member(attr)
        self._queue: list[tuple[float, Candidate]] | None = None
        self._record: Record | None = None

    @property
    def open(self) -> bool:
        """Whether anything is left to measure."""
        return self._queue is None or len(self._queue) > 0

    def price(self, seconds: float) -> float:
        """Estimated seconds of what comes next: listing the candidates, else a contest with the cheapest one."""
        if self._queue is None:
            return 0.02
        return self._slowness * (self._common(seconds) + self._queue[0][0]) if self._queue else 0.0

    def _common(self, seconds: float) -> float:
        """Estimated seconds of any contest: arrays, the reference, and the timing."""
        return BUDGET + 2e-8 * nbytes(self._member) + 20 * seconds

    def buy(self, attr: KernelAttr, choice: Choice, seconds: float) -> None:
        """Measure as many candidates as the class has earned."""
        started = perf_counter()
        if self._queue is None:
            if self.earned < SAFETY * (self.spent + self.price(seconds)):
                return
            self._queue = self._listed(attr, choice)
        spent = self.spent + perf_counter() - started
        credit = (self.earned / SAFETY - spent) / self._slowness - self._common(seconds)
        bought = 0
        while bought < len(self._queue) and self._queue[bought][0] <= credit:
            credit -= self._queue[bought][0]
            bought += 1
        if not bought:
            return
        estimate = self._common(seconds) + sum(cost for cost, _ in self._queue[:bought])
        challengers = [candidate for _, candidate in self._queue[:bought]]
        self._queue = self._queue[bought:]
        with saying(f"measuring {self._member.kernel_type.name}({self._member.text()})"):
            self._hold(attr, self._incumbents(choice) + challengers, started)
        self._slowness = max(1.0, (perf_counter() - started) / estimate)

    def _hold(self, attr: KernelAttr, entrants: Sequence[Candidate], started: float) -> None:
        """One contest: its order first, then whoever lost before."""
        found = contest(self._member, entrants, reference(self._member).callable(), budget=BUDGET)
        if not found.candidates or found.candidates[0].seconds is None:
            self._queue = []  # not even the reference works on sample arrays
            return
        before = self._record.candidates if self._record else ()
        labels = {measured.label for measured in found.candidates}
        others = [measured for measured in before if measured.label not in labels]
        timed = [m for m in (*found.candidates, *others) if m.seconds is not None]
        failed = [m for m in (*found.candidates, *others) if m.seconds is None]
        self._record = Record((*timed, *failed), complete=not self._queue)
        self.contests += 1
        keep(attr, self._record, perf_counter() - started)

    def _listed(self, attr: KernelAttr, choice: Choice) -> list[tuple[float, Candidate]]:
        """Who is yet to be measured, those first that cost least to build."""
        self._record = known_record(attr)
        known = {measured.label for measured in self._record.candidates} if self._record else set()
        known |= {candidate.label for candidate in self._incumbents(choice)}
        waiting = [candidate for candidate in candidates(self._member) if candidate.label not in known]
        return sorted(((self._cost(c), c) for c in waiting), key=lambda entry: entry[0])

    def _incumbents(self, choice: Choice) -> list[Candidate]:
        """Who is to be beaten: the pick so far; at the first contest the static choice, and the reference."""
        offered = candidates(self._member)
        if self._record is not None:
            best = [c for c in offered if c.label == self._record.pick.label]
            if best:
                return best
        named = [c for c in offered if c.implementation == choice.implementation.name]
        return list({c.label: c for c in (*named[:1], offered[-1])}.values())

    def _cost(self, candidate: Candidate) -> float:
        """Estimated seconds of building and loading a candidate, and of looking at its threads."""
        found = implementation(type(self._member), candidate.implementation)
        threads = DUEL if candidate.variant.get("parallel") else 0.0
        if found.is_reference or _is_kept(found.function(self._member, **candidate.variant).text):
            return LOAD + threads
        return BUILD + threads + (0.0 if "numba" in sys.modules else FIRST_BUILD)


def _is_kept(text: str) -> bool:
    """Whether what is built from a text lies in the cache."""
    place = cache.objects_directory()
    return place is not None and any(
        (place / f"{cache.key_of(text)}{suffix}").exists() for suffix in (".o", ".so")
    )


_ledgers: dict[tuple[KernelAttr, int], Ledger] = {}


def _ledger_of(attr: KernelAttr) -> Ledger:
    key = attr.tuning_class(), get_num_threads()
    return _ledgers.get(key) or _ledgers.setdefault(key, Ledger(attr))
