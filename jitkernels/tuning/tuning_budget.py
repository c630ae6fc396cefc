"""The ledger of a tuning class: what its calls have paid, what measuring it has cost, who is yet to be measured.

Candidates are measured when they are paid for, the cheapest to build first, each time against the best so far.
Every contest is stored at once, so what one process did not come to is left to the next.
"""

import functools
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import Choice, known_record
from jitkernels.kept import kept_property
from jitkernels.locks import making
from jitkernels.native.code import LOAD, code_of
from jitkernels.native.threads import get_num_threads
from jitkernels.patience import saying
from jitkernels.registry import implementation
from jitkernels.tuning.classes import class_of, measured_member, nbytes
from jitkernels.tuning.store import Record

if TYPE_CHECKING:
    from jitkernels.tuning.tuner import Candidate

SAFETY = 1.3
"""Calls have to have cost so many times the estimate of what is bought with them, because it is one."""
BUDGET = 0.02
"""Seconds of timing in one contest, which has few candidates."""
DUEL = 0.1
"""Seconds of looking at threads as users see them."""
LISTING = 0.04
"""Seconds of finding out what candidates there are, which loads libraries, and which of them are built."""


@functools.cache
def _tools() -> Any:
    """What measures. Most processes come to nothing that is to be measured; a fork waits for the import."""
    with making:
        from jitkernels import measuring

        return measuring


class Ledger:
    """One tuning class, for one number of threads. Whoever changes it holds `locks.measuring`."""

    def __init__(self, attr: KernelAttr) -> None:
        self.earned = 0.0
        self.spent = 0.0
        self.contests = 0
        self._slowness = 1.0  # of this machine at this time, against the estimates
        self._attr = attr
        self._queue: list[tuple[float, Candidate]] | None = None
        self._record: Record | None = None

    @kept_property
    def _member(self) -> KernelAttr:
        return measured_member(self._attr)

    @property
    def open(self) -> bool:
        """Whether anything is left to measure."""
        return self._queue is None or len(self._queue) > 0

    def price(self, seconds: float) -> float:
        """Estimated seconds of what comes next: listing the candidates, else a contest with the cheapest one."""
        if self._queue is None:
            return LISTING
        return self._slowness * (self._common(seconds) + self._queue[0][0]) if self._queue else 0.0

    def _common(self, seconds: float) -> float:
        """Estimated seconds of any contest: arrays, the reference, and the timing."""
        return BUDGET + 2e-8 * nbytes(self._member) + 20 * seconds

    def buy(self, choice: Choice, seconds: float, started: float) -> None:
        """Measure as many candidates as the class has earned; its spending goes on since `started`."""
        if self._queue is None:
            if self.earned < SAFETY * (self.spent + LISTING):
                return
            self._queue = self._listed(choice)
        spent = self.spent + perf_counter() - started
        credit = (self.earned / SAFETY - spent) / self._slowness - self._common(seconds)
        bought: list[Candidate] = []
        price = self._common(seconds)
        for cost, candidate in self._queue:
            if cost > credit:
                break
            credit -= cost
            price += cost
            bought.append(candidate)
        if bought:
            self._queue = self._queue[len(bought) :]
            begun = perf_counter()
            with saying(f"measuring {self._member.kernel_type.name}({self._member.text()})"):
                self._hold([*self._incumbents(choice), *bought])
            self._slowness = max(1.0, (perf_counter() - begun) / price)

    def _hold(self, entrants: "Sequence[Candidate]") -> None:
        """One contest: its order first, then whoever lost before."""
        started = perf_counter()
        found = _tools().contest(
            self._member, entrants, _tools().reference(self._member).callable(), budget=BUDGET
        )
        if not found.candidates or found.candidates[0].seconds is None:
            self._queue = []  # not even the reference can be measured
            return
        self._record = Record(found.candidates, complete=not self._queue).before(self._record)
        self.contests += 1
        _tools().keep(self._member, self._record, perf_counter() - started)

    def _listed(self, choice: Choice) -> "list[tuple[float, Candidate]]":
        """Who is yet to be measured, those first that cost least to build."""
        self._record = known_record(self._member)
        known = {measured.label for measured in self._record.candidates} if self._record else set()
        known |= {candidate.label for candidate in self._incumbents(choice)}
        waiting = [
            candidate for candidate in _tools().candidates(self._member) if candidate.label not in known
        ]
        return sorted(((self._cost(c), c) for c in waiting), key=lambda entry: entry[0])

    def _incumbents(self, choice: Choice) -> "list[Candidate]":
        """Who is to be beaten: the best so far; at the first contest the present choice, and the reference."""
        offered = _tools().candidates(self._member)
        if self._record is not None:
            best = [c for c in offered if c.label == self._record.pick.label]
            if best:
                return best
        named = [c for c in offered if c.implementation == choice.implementation.name]
        return list({c.label: c for c in (*named[:1], offered[-1])}.values())

    def _cost(self, candidate: "Candidate") -> float:
        """Estimated seconds of building and loading a candidate, and of looking at its threads."""
        found = implementation(type(self._member), candidate.implementation)
        threads = DUEL if candidate.variant.get("parallel") else 0.0
        if found.is_reference:
            return LOAD + threads
        return code_of(found.source(self._member, candidate.variant)).seconds + threads


_ledgers: dict[tuple[KernelAttr, int], Ledger] = {}


def ledger_of(attr: KernelAttr) -> Ledger:
    """The one ledger of an attr's tuning class in this process."""
    key = class_of(attr), get_num_threads()
    return _ledgers.get(key) or _ledgers.setdefault(key, Ledger(attr))
