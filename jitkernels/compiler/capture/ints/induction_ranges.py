"""Between which bounds the ints lie that a loop carries: hopes at first, which each trace of a round looks at."""

from collections.abc import Sequence
from typing import Any

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.ranges import Interval
from jitkernels.frontends.flow.state import UNSET, kind_of
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node

ANY: Interval = ranges.LEAST, ranges.MOST


class CarriedInts:
    """The bounds, by the places of the variables. `before`: what these are before the loop.

    `rounds`: no less than there are, if that is known.
    """

    def __init__(
        self, tracer: Tracer, before: Sequence[Any], kinds: Sequence[Any], rounds: Number | None
    ) -> None:
        self.tracer, self.before, self.rounds = tracer, before, rounds
        self.bounds: dict[int, Interval] = {}
        for place, one in enumerate(before):  # most ints count up
            start = ranges.interval(tracer, one) if kinds[place] is int else None
            if start is not None and ranges.is_small(start):
                self.bounds[place] = start[0], ranges.FAR
        self._hoped = dict(self.bounds)
        self._narrowed: set[int] = set()
        self._below: set[int] = set()
        self._after: dict[int, tuple[Interval, Interval]] = {}

    def recall(self, bounds: dict[int, Interval]) -> None:
        """Begin with what was found in a round of the loop around."""
        self.bounds |= bounds
        self._hoped = dict(self.bounds)

    def begin(self, made: Node, place: int) -> None:
        """What is known of an int in a round: what was found before, at first that it moves by little."""
        ranges.note(self.tracer, made, self.bounds.get(place, ranges.FREE))
        self.tracer.moves[id(made)] = made, ranges.Move(made)

    def is_within(self, place: int, made: Node, now: Any, *, has_checks: bool) -> bool:
        """Whether an int stays in the bounds that were taken to hold, which are as narrow as can be told.

        That takes another trace where they are narrower: then only if something is tested in the rounds.
        """
        self._after.pop(place, None)
        if kind_of(now) is not int:
            return True
        before = self.before[place]
        begin = ((0, 0) if before is UNSET else ranges.interval(self.tracer, before)) or ANY
        move = ranges.move_of(self.tracer, now.node) if type(now) is Traced else None
        move = move if move is not None and move.base is made else None
        # What conditions tell of what a round makes of it.
        found = ranges.hull([begin, ranges.interval(self.tracer, now) or ANY])
        moved = found if move is None else _moved(begin, move)
        inside = ranges.within(moved, found)
        self._after[place] = moved, inside
        best = inside if move is None else ranges.within(inside, self._counted(begin, move))
        taken = self.bounds.get(place, ranges.FREE)
        if not (ranges.is_no_more(taken[0], best[0]) and ranges.is_no_more(best[1], taken[1])):
            was_hope = self._hoped.pop(place, None) is not None
            self.bounds[place] = ranges.FREE if was_hope else ANY
            is_moved = move is not None and move.also is None
            if was_hope and not is_moved and begin is not ANY and place not in self._below:
                self._below.add(place)
                is_natural = ranges.is_at_least(begin[0], 0)  # as the end of what is searched
                self.bounds[place] = self._hoped[place] = (0 if is_natural else -ranges.FAR), begin[1]
            return False
        narrower = ranges.within(taken, best if has_checks else moved)
        if place in self._narrowed or ranges.are_same(taken, narrower):
            return True
        self._narrowed.add(place)
        self.bounds[place] = narrower
        return False

    def _counted(self, begin: Interval, move: ranges.Move) -> Interval:
        """Where an int lies in the rounds of a loop that counts: it moves by so much in each of those before."""
        if self.rounds is None or move.also is not None or move.step is None:
            return ANY
        low, high = move.step
        if type(low) is not int or type(high) is not int:
            return ANY
        last = self.rounds - 1
        return begin[0] + min(low, 0) * last, begin[1] + max(high, 0) * last

    def after(self, place: int, made: Node) -> None:
        """What is known of an int after the loop."""
        before, bounds = self.before[place], self.bounds.get(place, ranges.FREE)
        bounds, inside = self._after.get(place, (bounds, bounds))
        ranges.note(self.tracer, made, inside)
        start = ranges.move_of(self.tracer, before.node) if type(before) is Traced else None
        first = ranges.interval(self.tracer, before) if start is not None else None
        if start is not None and first is not None:
            is_little = all(
                one in (end, far) for one, end, far in zip(bounds, first, ranges.FREE, strict=True)
            )
            is_up = start.is_up and ranges.are_same(bounds[:1], first[:1])
            is_down = start.is_down and ranges.are_same(bounds[1:], first[1:])
            also = start.also and bounds
            move = ranges.Move(start.base, start.is_little and is_little, is_up, is_down, None, also)
            self.tracer.moves[id(made)] = made, move


def _moved(begin: Interval, move: ranges.Move) -> Interval:
    """Where an int lies that each round moves, however many there are."""
    low, high = begin if move.also is None else ranges.hull([begin, move.also])
    ends = ranges.FREE if move.is_little else ANY
    return low if move.is_up else ends[0], high if move.is_down else ends[1]
