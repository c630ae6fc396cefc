"""Between which bounds the ints lie that a loop carries: hopes at first, which each trace of a round looks at."""

from collections.abc import Sequence
from typing import Any

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.ranges import Interval
from jitkernels.frontends.flow.state import UNSET, kind_of
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.ir import Node

ANY: Interval = ranges.LEAST, ranges.MOST


class CarriedInts:
    """The bounds, by the places of the variables. `before`: what these are before the loop."""

    def __init__(self, tracer: Tracer, before: Sequence[Any], kinds: Sequence[Any]) -> None:
        self.tracer, self.before = tracer, before
        self.bounds: dict[int, Interval] = {}
        for place, one in enumerate(before):  # most ints count up
            start = ranges.interval(tracer, one) if kinds[place] is int else None
            if start is not None and ranges.is_small(start):
                self.bounds[place] = start[0], ranges.FAR
        self._hoped = dict(self.bounds)
        self._narrowed: set[int] = set()
        self._below: set[int] = set()
        self._found: dict[int, Interval] = {}

    def recall(self, bounds: dict[int, Interval]) -> None:
        """Begin with what was found in a round of the loop around."""
        self.bounds |= bounds
        self._hoped = dict(self.bounds)

    def begin(self, made: Node, place: int) -> None:
        """What is known of an int in a round: what was found before, at first that it moves by little."""
        ranges.note(self.tracer, made, self.bounds.get(place, ranges.FREE))
        self.tracer.moves[id(made)] = made, ranges.Move(made)

    def is_within(self, place: int, made: Node, now: Any) -> bool:
        """Whether an int stays in the bounds that were taken to hold, which are as narrow as can be told."""
        self._found.pop(place, None)
        if kind_of(now) is not int:
            return True
        before = self.before[place]
        begin = (0, 0) if before is UNSET else ranges.interval(self.tracer, before)
        low, high = begin or ANY
        move = ranges.move_of(self.tracer, now.node) if type(now) is Traced else None
        self._found[place] = ranges.hull([(low, high), ranges.interval(self.tracer, now) or ANY])
        if move is None or move.base is not made:
            low, high = self._found[place]
        else:
            if move.also is not None:
                low, high = ranges.hull([(low, high), move.also])
            ends = ranges.FREE if move.is_little else ANY
            low, high = low if move.is_up else ends[0], high if move.is_down else ends[1]
        taken = self.bounds.get(place, ranges.FREE)
        if ranges.are_same(taken, (low, high)):
            return True
        if not (ranges.is_no_more(taken[0], low) and ranges.is_no_more(high, taken[1])):
            was_hope = self._hoped.pop(place, None) is not None
            self.bounds[place] = ranges.FREE if was_hope else ANY
            is_moved = move is not None and move.base is made
            if was_hope and not is_moved and begin is not None and place not in self._below:
                self._below.add(place)
                is_natural = ranges.is_at_least(begin[0], 0)  # as the end of what is searched
                self.bounds[place] = self._hoped[place] = (0 if is_natural else -ranges.FAR), begin[1]
            return False
        if place in self._narrowed:
            return True
        self._narrowed.add(place)
        self.bounds[place] = low, high
        return False

    def after(self, place: int, made: Node) -> None:
        """What is known of an int after the loop."""
        before, bounds = self.before[place], self.bounds.get(place, ranges.FREE)
        # Conditions may bound what a round makes of it where they do not bound what it is given.
        ranges.note(self.tracer, made, ranges.within(bounds, self._found.get(place, bounds)))
        start = ranges.move_of(self.tracer, before.node) if type(before) is Traced else None
        first = ranges.interval(self.tracer, before) if start is not None else None
        if start is not None and first is not None:
            is_little = all(
                one in (end, far) for one, end, far in zip(bounds, first, ranges.FREE, strict=True)
            )
            is_up = start.is_up and ranges.are_same(bounds[:1], first[:1])
            is_down = start.is_down and ranges.are_same(bounds[1:], first[1:])
            also = start.also and bounds
            move = ranges.Move(start.base, start.is_little and is_little, is_up, is_down, also)
            self.tracer.moves[id(made)] = made, move
