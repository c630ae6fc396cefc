"""Intervals of loop-carried ints: assumptions at first, which each trace of the body verifies."""

from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, kind_of
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.intervals import Interval
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number

ANY: Interval = intervals.LEAST, intervals.MOST


class CarriedInts:
    """The intervals by slots of variables.

    `before`: the values before the loop; `max_trips`: an upper bound of the trip count, if known.
    """

    def __init__(self, tracer: Tracer, before: Sequence[Any], kinds: Sequence[Any], max_trips: Number | None) -> None:
        self.tracer, self.before, self.max_trips = tracer, before, max_trips
        self.bounds: dict[int, Interval] = {}
        for slot, value in enumerate(before):  # most ints increase
            start = intervals.interval(tracer, value) if kinds[slot] is int else None
            if start is not None and intervals.is_small(start):
                self.bounds[slot] = start[0], intervals.FAR
        self._assumed = dict(self.bounds)
        self._narrowed: set[int] = set()
        self._below: set[int] = set()
        self._after: dict[int, tuple[Interval, Interval]] = {}

    def recall(self, bounds: dict[int, Interval]) -> None:
        """Start from the intervals found in an earlier trace of the enclosing loop's body."""
        self.bounds |= bounds
        self._assumed = dict(self.bounds)

    def begin(self, node: Node, slot: int) -> None:
        """Record what is known of an int at the start of an iteration; at first, that it changes by small steps."""
        intervals.note(self.tracer, node, self.bounds.get(slot, intervals.FREE))
        self.tracer.moves[id(node)] = node, intervals.Move(node)

    def is_within(self, slot: int, node: Node, now: Any, *, has_checks: bool) -> bool:
        """Whether an int stays within the assumed interval, which is as narrow as is known.

        A narrower interval requires another trace of the body, worthwhile only if iterations have runtime guards.
        """
        self._after.pop(slot, None)
        if kind_of(now) is not int:
            return True
        before = self.before[slot]
        start = ((0, 0) if before is UNSET else intervals.interval(self.tracer, before)) or ANY
        move = intervals.move_of(self.tracer, now.node) if type(now) is Traced else None
        move = move if move is not None and move.base is node else None
        # What conditions imply about its value at the end of an iteration.
        body_bounds = intervals.hull([start, intervals.interval(self.tracer, now) or ANY])
        moved = body_bounds if move is None else _moved(start, move)
        inside = intervals.within(moved, body_bounds)
        self._after[slot] = moved, inside
        best = inside if move is None else intervals.within(inside, self._range_in_counted_loop(start, move))
        assumed = self.bounds.get(slot, intervals.FREE)
        if not (intervals.is_at_most(assumed[0], best[0]) and intervals.is_at_most(best[1], assumed[1])):
            was_assumed = self._assumed.pop(slot, None) is not None
            self.bounds[slot] = intervals.FREE if was_assumed else ANY
            is_moved = move is not None and move.also is None
            if was_assumed and not is_moved and start is not ANY and slot not in self._below:
                self._below.add(slot)
                is_natural = intervals.is_at_least(start[0], 0)  # like the end of a search range
                self.bounds[slot] = self._assumed[slot] = (0 if is_natural else -intervals.FAR), start[1]
            return False
        narrower = intervals.within(assumed, best if has_checks else moved)
        if slot in self._narrowed or intervals.are_same(assumed, narrower):
            return True
        self._narrowed.add(slot)
        self.bounds[slot] = narrower
        return False

    def _range_in_counted_loop(self, start: Interval, move: intervals.Move) -> Interval:
        """The interval of an int in a counted loop: each earlier iteration has changed it by its step."""
        if self.max_trips is None or move.also is not None or move.step is None:
            return ANY
        low, high = move.step
        if type(low) is not int or type(high) is not int:
            return ANY
        last = self.max_trips - 1
        return start[0] + min(low, 0) * last, start[1] + max(high, 0) * last

    def after(self, slot: int, node: Node) -> None:
        """Record what is known of an int after the loop."""
        before, bounds = self.before[slot], self.bounds.get(slot, intervals.FREE)
        bounds, inside = self._after.get(slot, (bounds, bounds))
        intervals.note(self.tracer, node, inside)
        start = intervals.move_of(self.tracer, before.node) if type(before) is Traced else None
        first = intervals.interval(self.tracer, before) if start is not None else None
        if start is not None and first is not None:
            is_little = all(bound in (end, far) for bound, end, far in zip(bounds, first, intervals.FREE, strict=True))
            is_up = start.is_up and intervals.are_same(bounds[:1], first[:1])
            is_down = start.is_down and intervals.are_same(bounds[1:], first[1:])
            also = start.also and bounds
            move = intervals.Move(start.base, start.is_little and is_little, is_up, is_down, None, also)
            self.tracer.moves[id(node)] = node, move


def _moved(begin: Interval, move: intervals.Move) -> Interval:
    """The interval of an int that each iteration changes by a step, for any trip count."""
    low, high = begin if move.also is None else intervals.hull([begin, move.also])
    ends = intervals.FREE if move.is_little else ANY
    return low if move.is_up else ends[0], high if move.is_down else ends[1]
