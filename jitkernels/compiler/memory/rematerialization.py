"""Arrays that are computed again where they are needed next, so that others have their memory meanwhile.

Where `memory_limit` is below what the arrays between steps need, units (see `lifetimes`) come again in the order of a
program: the same code, so that results are the same to the last bit. Rules:

1. A unit may come again if it is made of nests and products alone, looks for nothing that NumPy would refuse, and
   writes neither to arguments nor over what it reads.
2. It may come before a reader if up to there nobody else has written to what it reads and writes.
3. What it reads and has no memory any more is kept up to there where that stays below the limit, and else computed
   again as well.
4. What comes again is what gains most for its work, at the time when most memory is needed, until the plan fits. What
   is no longer needed at the end of that is left out again, and so is what is computed for no reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import NamedTuple

from jitkernels.errors import MemoryLimitError
from jitkernels.graph.arena import Arena, Buffer, needed_at, planned
from jitkernels.graph.lifetimes import Use, spans_of

MOST_TRIED = 24
"""Arrays that are looked at for each that is computed again, the largest ones."""
MOST_CHANGES, DEEPEST = 400, 300
"""How often an order is changed, and how many units come again for one at most, each for the next."""


class Turn(NamedTuple):
    """When a unit is done. `at`: its place among the units of the program, or that of the one before which it comes."""

    unit: int
    at: int


Order = list[Turn]


class Goal(NamedTuple):
    """Before what something has to be there, what is needed at each time, and the bytes that this should not exceed."""

    before: int
    live: Sequence[int]
    aim: int


@dataclass
class Recomputing:
    """What each unit of a program uses, its work, whether it stays where it is, and the arrays between units."""

    uses: Sequence[Use]
    work: Sequence[int]
    stays: Sequence[bool]
    given: frozenset[int]
    """Words of arguments."""
    buffers: Sequence[Buffer]

    def __post_init__(self) -> None:
        self.size = {one.word: one.now for one in self.buffers}
        self.may_repeat = [
            not (stays or use.reads & use.writes or self.given & use.writes)
            for stays, use in zip(self.stays, self.uses, strict=True)
        ]
        self.touched = [use.reads | use.writes for use in self.uses]
        self._known: tuple[Order, dict[int, list[tuple[int, int]]]] = [], {}
        self.writers: dict[int, list[int]] = {}
        for number, use in enumerate(self.uses):
            for word in use.writes:
                self.writers.setdefault(word, []).append(number)

    def within(self, limit: int) -> tuple[list[int], Arena]:
        """An order of units and its plan, which takes no more than so many bytes.

        Raises MemoryLimitError where none is found.
        """
        order, aim = [Turn(number, number) for number in range(len(self.uses))], limit
        for _ in range(MOST_CHANGES):
            live = self._live(order)
            if max(live, default=0) <= aim:
                arena = planned(self._needed_in(order))
                if arena.now <= limit:
                    order, arena = self._without_needless(order, arena, limit)
                    return [turn.unit for turn in order], arena
                aim = (
                    max(live, default=0) - 1
                )  # there are gaps in the best plan: less has to be needed at once
            changed = self._changed(order, live, aim)
            if changed is None:
                break
            order = changed
        needed = planned(self._needed_in(order)).now
        raise MemoryLimitError(
            f"memory_limit: the arrays between kernels need {needed:,} bytes for these sizes, with all computed again"
            f" that may be; the limit is {limit:,} bytes"
        )

    def _spans(self, order: Order) -> dict[int, list[tuple[int, int]]]:
        if self._known[0] is not order:
            self._known = order, spans_of([turn.unit for turn in order], self.uses)
        return self._known[1]

    def _needed_in(self, order: Order) -> list[Buffer]:
        spans = self._spans(order)
        return [replace(one, spans=tuple(spans[one.word])) for one in self.buffers]

    def _live(self, order: Order) -> list[int]:
        """The bytes that are needed at each time."""
        changes, now = needed_at(self._needed_in(order)), 0
        found = []
        for time in range(len(order) + 2):
            now = changes.get(time, now)
            found.append(now)
        return found

    def _changed(self, order: Order, live: list[int], aim: int) -> Order | None:
        """An order in which less is needed above a limit; None where none is found."""
        peak = max(range(len(live)), key=live.__getitem__)
        excess = _above(order, live, aim)
        work = self._work_of(order)
        best: tuple[float, Order] | None = None
        for word, before in self._absent_at(order, peak)[:MOST_TRIED]:
            new = self._again(order, word, before, live, aim)
            if new is None:
                continue
            new = self._without_unread(new)
            gain = excess - _above(new, self._live(new), aim)
            cost = self._work_of(new) - work
            if gain > 0 and (best is None or gain / max(cost, 1) > best[0]):
                best = gain / max(cost, 1), new
        return best and best[1]

    def _work_of(self, order: Order) -> int:
        return sum(self.work[turn.unit] for turn in order)

    def _absent_at(self, order: Order, time: int) -> list[tuple[int, int]]:
        """Words that are needed before and after some time, and not then, and when next; the largest first."""
        found = []
        spans = self._spans(order)
        for word in self.size:
            if not any(first < time < last for first, last in spans[word]):
                continue
            times = [t for t, turn in enumerate(order) if word in self.touched[turn.unit]]
            for before, after in pairwise(times):
                if before < time < after:
                    found.append((word, after))
        return sorted(found, key=lambda pair: -self.size[pair[0]])

    def _again(self, order: Order, word: int, before: int, live: Sequence[int], aim: int) -> Order | None:
        """The order with what makes an array once more before some time; None where that cannot be."""
        maker = self._maker(order, word, before)
        if maker is None:
            return None
        needed = self._needed(order, maker, Goal(before, live, aim), [])
        if needed is None:
            return None
        at = order[before].at
        return [*order[:before], *(Turn(unit, at) for unit in needed), *order[before:]]

    def _maker(self, order: Order, word: int, before: int) -> int | None:
        """The unit that wrote an array last."""
        writers = self.writers.get(word, ())
        return next((turn.unit for turn in reversed(order[:before]) if turn.unit in writers), None)

    def _needed(
        self, order: Order, unit: int, goal: "Goal", known: list[int], depth: int = 0
    ) -> list[int] | None:
        """Units that have to come before some time, so that one can come again, and this one, behind `known`."""
        before = goal.before
        if unit in known:
            return known
        if not self.may_repeat[unit]:
            return None
        first = next(at for at, turn in enumerate(order) if turn.unit == unit)
        use = self.uses[unit]
        for word in use.reads | use.writes:
            own = unit if word in use.writes else self._maker(order, word, first)
            others = [other for other in self.writers.get(word, ()) if other != own]
            if any(turn.unit in others for turn in order[first + 1 : before]):
                return None
        spans = self._spans(order)
        for word in sorted(use.reads & self.size.keys()):
            if any(begin < before <= end for begin, end in spans[word]):
                continue
            gone = max(end for begin, end in spans[word] if begin < before)
            most = max(goal.live[gone + 1 : before], default=0)
            maker = self._maker(order, word, before)
            if maker is None:
                return None
            if most + self.size[word] > goal.aim and self.may_repeat[maker] and depth < DEEPEST:
                more = self._needed(order, maker, goal, known, depth + 1)
                known = known if more is None else more
        return [*known, unit]

    def _without_unread(self, order: Order) -> Order:
        """Without the earlier of two times that a unit comes, if nobody needs what it makes between."""
        times: dict[int, list[int]] = {}
        for at, turn in enumerate(order):
            times.setdefault(turn.unit, []).append(at)
        unread = {
            first
            for unit, own in times.items()
            for first, second in pairwise(own)
            if not any(self.uses[unit].writes & self.touched[turn.unit] for turn in order[first + 1 : second])
        }
        return [turn for at, turn in enumerate(order) if at not in unread] if unread else order

    def _without_needless(self, order: Order, arena: Arena, limit: int) -> tuple[Order, Arena]:
        """Without what comes again though it fits to keep it, that of most work first."""
        seen: set[int] = set()
        again: list[Turn] = []
        for turn in order:
            if turn.unit in seen:
                again.append(turn)
            seen.add(turn.unit)
        for turn in sorted(again, key=lambda turn: -self.work[turn.unit]):
            last = len(order) - 1 - order[::-1].index(turn)
            tried = [*order[:last], *order[last + 1 :]]
            if max(self._live(tried), default=0) <= limit:
                found = planned(self._needed_in(tried))
                if found.now <= limit:
                    order, arena = tried, found
        return order, arena


def _above(order: Order, live: Sequence[int], aim: int) -> int:
    """How much more than some bytes is needed, for each unit of the program with what comes again before it."""
    pairs = zip(live, [*(turn.at for turn in order), -1, -1], strict=True)
    groups = groupby(pairs, key=lambda pair: pair[1])
    return sum(max(0, max(now for now, _ in group) - aim) for _, group in groups)
