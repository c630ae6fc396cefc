"""The tuning budget of a class: the credit of its calls, the cost of measuring, and the candidates left to measure.

Candidates are measured when they are paid for, the cheapest to build first, each time against the best so far. Every
comparison is stored at once, so the next process continues where this one stopped.
"""

import functools
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import UNEARNED, implementation
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.fork_locks import build_lock
from jitkernels.core.progress import progress_message
from jitkernels.runtime.loading.compiled_code import LOAD, code_of
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection.records import Record
from jitkernels.selection.select import Choice, known_record
from jitkernels.selection.size_classes import class_of, measured_member, nbytes

if TYPE_CHECKING:
    from jitkernels.tuning.tuner import Candidate

SAFETY = 1.3
"""Calls must have cost this many times the estimated price of a measurement, because it is an estimate."""
COMPARISON_SECONDS = 0.02
"""Seconds of timing in one comparison, which has few candidates."""
DUEL = 0.1
"""Seconds of measuring the cost of threads to users."""
LISTING = 0.04
"""Seconds of listing the candidates, which loads libraries, and of finding which of them are built."""


@functools.cache
def _tools() -> Any:
    """The tuning module, imported on demand, as most processes measure nothing; a fork waits for the import."""
    with build_lock:
        from jitkernels.tuning import tune

        return tune


class TuningBudget:
    """The budget of one size class for one number of threads. `fork_locks.measure_lock` guards changes."""

    def __init__(self, attr: KernelAttr) -> None:
        self.earned = 0.0
        self.spent = 0.0
        self.contests = 0
        self._slowness = 1.0  # actual over estimated time on this machine
        self._attr = attr
        self._queue: list[tuple[float, Candidate]] | None = None
        self._record: Record | None = None

    @unlocked_cached_property
    def _member(self) -> KernelAttr:
        return measured_member(self._attr)

    @property
    def open(self) -> bool:
        """Whether any candidate is left to measure."""
        return self._queue is None or len(self._queue) > 0

    def price(self, seconds: float) -> float:
        """Estimated seconds of the next step: listing the candidates, else a comparison with the cheapest one."""
        if self._queue is None:
            return LISTING
        return self._slowness * (self._common(seconds) + self._queue[0][0]) if self._queue else 0.0

    def _common(self, seconds: float) -> float:
        """Estimated seconds that any comparison takes: arrays, the reference, and the timing."""
        return COMPARISON_SECONDS + 2e-8 * nbytes(self._member) + 20 * seconds

    def buy(self, choice: Choice, seconds: float, started: float) -> None:
        """Measure as many candidates as the class has earned; spending since `started` counts."""
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
            with progress_message(f"measuring {self._member.kernel_type.name}({self._member.text()})"):
                self._run_contest([*self._incumbents(choice), *bought])
            self._slowness = max(1.0, (perf_counter() - begun) / price)

    def _run_contest(self, entrants: "Sequence[Candidate]") -> None:
        """Run one comparison and store its order, followed by earlier losers."""
        started = perf_counter()
        record = _tools().contest(
            self._member, entrants, _tools().reference(self._member).callable(), budget=COMPARISON_SECONDS
        )
        if not record.candidates or record.candidates[0].seconds is None:
            self._queue = []  # even the reference cannot be measured
            return
        self._record = Record(record.candidates, complete=not self._queue).before(self._record)
        self.contests += 1
        _tools().keep(self._member, self._record, perf_counter() - started)

    def _listed(self, choice: Choice) -> "list[tuple[float, Candidate]]":
        """The candidates left to measure, cheapest to build first."""
        self._record = known_record(self._member)
        known = {measured.label for measured in self._record.candidates} if self._record else set()
        known |= {candidate.label for candidate in self._incumbents(choice)}
        waiting = [
            candidate
            for candidate in _tools().candidates(self._member)
            if candidate.label not in known and candidate.implementation not in UNEARNED
        ]
        return sorted(((self._cost(c), c) for c in waiting), key=lambda entry: entry[0])

    def _incumbents(self, choice: Choice) -> "list[Candidate]":
        """The candidates to beat: the best so far; at the first comparison the current choice, and the reference."""
        offered = _tools().candidates(self._member)
        if self._record is not None:
            best = [c for c in offered if c.label == self._record.pick.label]
            if best:
                return best
        named = [c for c in offered if c.implementation == choice.implementation.name]
        return list({c.label: c for c in (*named[:1], offered[-1])}.values())

    def _cost(self, candidate: "Candidate") -> float:
        """Estimated seconds of building and loading a candidate, and of measuring its threads."""
        candidate_implementation = implementation(type(self._member), candidate.implementation)
        threads = DUEL if candidate.variant.get("parallel") else 0.0
        if candidate_implementation.is_reference:
            return LOAD + threads
        return code_of(candidate_implementation.source(self._member, candidate.variant)).seconds + threads


_budgets: dict[tuple[KernelAttr, int], TuningBudget] = {}


def tuning_budget_of(attr: KernelAttr) -> TuningBudget:
    """The one budget of an attr's size class in this process."""
    key = class_of(attr), get_num_threads()
    return _budgets.get(key) or _budgets.setdefault(key, TuningBudget(attr))
