"""Rematerialization: recompute arrays before a later use instead of keeping them live, to meet `memory_limit`.

Units (see `lifetimes`) run again in the program's order: the same code, so that results are bitwise equal. Rules:

1. A unit may run again if it consists of nests, products and kernels only, contains no bailout check, and writes
   neither arguments nor what it reads, nor a part of what others write, too.
2. It may run before a reader if nobody has overwritten what it reads and writes in between.
3. Its dead operands stay live until then where that remains below the limit, and are recomputed as well otherwise.
4. At the peak of live bytes the recomputation with the best gain per work is chosen, until the plan fits. At the end
   recomputations that turn out to be unnecessary are removed, and so are those without a reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from jitkernels.compiler.memory.arena import Arena, Buffer, assign_offsets, needed_at
from jitkernels.compiler.memory.lifetimes import Use, spans_of
from jitkernels.errors import MemoryLimitError

MAX_TRIED = 24
"""The most candidates for each recomputation, the largest arrays first."""
MAX_CHANGES, MAX_RECOMPUTATION_CHAIN = 400, 300
"""The most changes of the order, and the longest chain of recomputations for one array."""


class UnitRun(NamedTuple):
    """One run of a unit. `at`: its position among the units, or that of the unit before which it runs again."""

    unit: int
    at: int


Order = list[UnitRun]


class MemoryGoal(NamedTuple):
    """A time before which arrays must exist, the live bytes at each time, and the limit for these."""

    before: int
    live: Sequence[int]
    aim: int


@dataclass
class Rematerializer:
    """The units of a program: their uses, work, whether they stay in place, and the buffers between them."""

    uses: Sequence[Use]
    work: Sequence[int]
    stays: Sequence[bool]
    argument_words: frozenset[int]
    """Words of arguments."""
    buffers: Sequence[Buffer]

    def __post_init__(self) -> None:
        self.size = {buffer.word: buffer.traced_bytes for buffer in self.buffers}
        self.touched = [use.reads | use.writes for use in self.uses]
        self._known: tuple[Order, dict[int, list[tuple[int, int]]]] = [], {}
        self.writers: dict[int, list[int]] = {}
        for number, use in enumerate(self.uses):
            for word in use.writes:
                self.writers.setdefault(word, []).append(number)
        in_parts = self.argument_words.union(word for word, units in self.writers.items() if len(units) > 1)
        self.may_repeat = [
            not (stays or use.reads & use.writes or in_parts & use.writes)
            for stays, use in zip(self.stays, self.uses, strict=True)
        ]

    def within(self, limit: int) -> tuple[list[int], Arena]:
        """Return an order of units and its arena of at most `limit` bytes.

        Raises MemoryLimitError if none is found.
        """
        order, aim = [UnitRun(number, number) for number in range(len(self.uses))], limit
        for _ in range(MAX_CHANGES):
            live = self._live(order)
            if max(live, default=0) <= aim:
                arena = assign_offsets(self._needed_in(order))
                if arena.traced_bytes <= limit:
                    order, arena = self._without_unnecessary(order, arena, limit)
                    return [turn.unit for turn in order], arena
                aim = max(live, default=0) - 1  # the best arena has gaps: lower the peak of live bytes
            changed = self._changed(order, live, aim)
            if changed is None:
                break
            order = changed
        needed = assign_offsets(self._needed_in(order)).traced_bytes
        raise MemoryLimitError(
            f"memory_limit: the arrays between kernels need {needed:,} bytes for these sizes, even with"
            f" rematerialization; the limit is {limit:,} bytes"
        )

    def _spans(self, order: Order) -> dict[int, list[tuple[int, int]]]:
        if self._known[0] is not order:
            self._known = order, spans_of([turn.unit for turn in order], self.uses)
        return self._known[1]

    def _needed_in(self, order: Order) -> list[Buffer]:
        spans = self._spans(order)
        return [replace(buffer, spans=tuple(spans[buffer.word])) for buffer in self.buffers]

    def _live(self, order: Order) -> list[int]:
        """The live bytes at each time."""
        changes, now = needed_at(self._needed_in(order)), 0
        results = []
        for time in range(len(order) + 2):
            now = changes.get(time, now)
            results.append(now)
        return results

    def _changed(self, order: Order, live: list[int], aim: int) -> Order | None:
        """Return an order with fewer live bytes above a limit; None if none is found."""
        peak = max(range(len(live)), key=live.__getitem__)
        excess = _above(order, live, aim)
        work = self._work_of(order)
        best: tuple[float, Order] | None = None
        for word, before in self._idle_at(order, peak)[:MAX_TRIED]:
            candidate = self._again(order, word, before, live, aim)
            if candidate is None:
                continue
            candidate = self._without_unread(candidate)
            gain = excess - _above(candidate, self._live(candidate), aim)
            cost = self._work_of(candidate) - work
            if gain > 0 and (best is None or gain / max(cost, 1) > best[0]):
                best = gain / max(cost, 1), candidate
        return best and best[1]

    def _work_of(self, order: Order) -> int:
        return sum(self.work[turn.unit] for turn in order)

    def _idle_at(self, order: Order, time: int) -> list[tuple[int, int]]:
        """Words that are live but unused at a time, with the time of their next use; the largest first."""
        results = []
        spans = self._spans(order)
        for word in self.size:
            if not any(first < time < last for first, last in spans[word]):
                continue
            times = [t for t, turn in enumerate(order) if word in self.touched[turn.unit]]
            for before, after in pairwise(times):
                if before < time < after:
                    results.append((word, after))
        return sorted(results, key=lambda pair: -self.size[pair[0]])

    def _again(self, order: Order, word: int, before: int, live: Sequence[int], aim: int) -> Order | None:
        """Insert the recomputation of an array before some time; None if it is not possible."""
        producer = self._producer_before(order, word, before)
        if producer is None:
            return None
        needed = self._needed(order, producer, MemoryGoal(before, live, aim), [])
        if needed is None:
            return None
        position = order[before].at
        return [*order[:before], *(UnitRun(unit, position) for unit in needed), *order[before:]]

    def _producer_before(self, order: Order, word: int, before: int) -> int | None:
        """The unit that wrote an array last before some time."""
        writers = self.writers.get(word, ())
        return next((turn.unit for turn in reversed(order[:before]) if turn.unit in writers), None)

    def _needed(
        self, order: Order, unit: int, goal: "MemoryGoal", known: list[int], depth: int = 0
    ) -> list[int] | None:
        """The units to run again before some time so that `unit` can, behind `known`; None if impossible."""
        before = goal.before
        if unit in known:
            return known
        if not self.may_repeat[unit]:
            return None
        first = next(at for at, turn in enumerate(order) if turn.unit == unit)
        use = self.uses[unit]
        for word in use.reads | use.writes:
            allowed_writer = unit if word in use.writes else self._producer_before(order, word, first)
            others = [other for other in self.writers.get(word, ()) if other != allowed_writer]
            if any(turn.unit in others for turn in order[first + 1 : before]):
                return None
        spans = self._spans(order)
        for word in sorted(use.reads & self.size.keys()):
            if any(begin < before <= end for begin, end in spans[word]):
                continue
            last_use = max(end for begin, end in spans[word] if begin < before)
            most = max(goal.live[last_use + 1 : before], default=0)
            producer = self._producer_before(order, word, before)
            if producer is None:
                return None
            if most + self.size[word] > goal.aim and self.may_repeat[producer] and depth < MAX_RECOMPUTATION_CHAIN:
                extended = self._needed(order, producer, goal, known, depth + 1)
                known = known if extended is None else extended
        return [*known, unit]

    def _without_unread(self, order: Order) -> Order:
        """Remove the earlier of two runs of a unit if nobody reads its outputs between them."""
        times: dict[int, list[int]] = {}
        for at, turn in enumerate(order):
            times.setdefault(turn.unit, []).append(at)
        unread = {
            first
            for unit, run_times in times.items()
            for first, second in pairwise(run_times)
            if not any(self.uses[unit].writes & self.touched[turn.unit] for turn in order[first + 1 : second])
        }
        return [turn for at, turn in enumerate(order) if at not in unread] if unread else order

    def _without_unnecessary(self, order: Order, arena: Arena, limit: int) -> tuple[Order, Arena]:
        """Remove recomputations whose arrays fit to stay live, those of most work first."""
        seen: set[int] = set()
        recomputations: list[UnitRun] = []
        for turn in order:
            if turn.unit in seen:
                recomputations.append(turn)
            seen.add(turn.unit)
        for turn in sorted(recomputations, key=lambda turn: -self.work[turn.unit]):
            last = len(order) - 1 - order[::-1].index(turn)
            candidate = [*order[:last], *order[last + 1 :]]
            if max(self._live(candidate), default=0) <= limit:
                candidate_arena = assign_offsets(self._needed_in(candidate))
                if candidate_arena.traced_bytes <= limit:
                    order, arena = candidate, candidate_arena
        return order, arena


def _above(order: Order, live: Sequence[int], aim: int) -> int:
    """The excess of live bytes over a limit, summed over the program's units with what is recomputed before them."""
    pairs = zip(live, [*(turn.at for turn in order), -1, -1], strict=True)
    groups = groupby(pairs, key=lambda pair: pair[1])
    return sum(max(0, max(now for now, _ in group) - aim) for _, group in groups)
