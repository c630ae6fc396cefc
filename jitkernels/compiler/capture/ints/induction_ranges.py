"""Intervals of loop-carried ints: assumptions at first, which each trace of the body verifies."""

from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, kind_of
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.intervals import ANY, FREE, Interval, Recurrence
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, is_at_least, is_loop_variant


class CarriedInts:
    """The intervals by slots of variables.

    `initial`: the values before the loop; `max_trips`: an upper bound of the trip count, if known.
    """

    def __init__(self, tracer: Tracer, initial: Sequence[Any], kinds: Sequence[Any], max_trips: Number | None) -> None:
        self.tracer, self.initial, self.max_trips = tracer, initial, max_trips
        self.bounds: dict[int, Interval] = {}
        for slot, value in enumerate(initial):  # most ints increase
            start = intervals.interval(tracer, value) if kinds[slot] is int else None
            if start is not None and intervals.is_small(start):
                self.bounds[slot] = start[0], intervals.FAR_LIMIT
        self._assumed = dict(self.bounds)
        self._narrowed: set[int] = set()
        self._below: set[int] = set()
        self._after: dict[int, tuple[Interval, Interval]] = {}
        self._steps: dict[int, Recurrence] = {}

    def recall(self, bounds: dict[int, Interval]) -> None:
        """Start from the intervals of an earlier trace of the enclosing loop's body."""
        self.bounds |= bounds
        self._assumed = dict(self.bounds)

    def begin(self, node: Node, slot: int) -> None:
        """Record what is known of an int at the start of an iteration; at first, that it changes by small steps."""
        intervals.note(self.tracer, node, self.bounds.get(slot, FREE))
        self.tracer.recurrences[node] = Recurrence(node)

    def is_within(self, slot: int, node: Node, now: Any, *, has_checks: bool) -> bool:
        """Whether an int stays within the assumed interval, which is as narrow as is known.

        A narrower interval requires another trace of the body, worthwhile only if iterations have runtime guards.
        """
        self._after.pop(slot, None)
        self._steps.pop(slot, None)
        if kind_of(now) is not int:
            return True
        initial = self.initial[slot]
        start = ((0, 0) if initial is UNSET else intervals.interval(self.tracer, initial)) or ANY
        step = self.tracer.recurrences.get(now.node) if type(now) is Traced else None
        step = step if step is not None and step.base is node else None
        self._steps[slot] = step or Recurrence(node, also=intervals.interval(self.tracer, now) or ANY)
        # What conditions imply about its value at the end of an iteration.
        body_bounds = intervals.hull([start, intervals.interval(self.tracer, now) or ANY])
        stepped = body_bounds if step is None else _any_trip_count(start, step)
        inside = intervals.intersect(stepped, body_bounds)
        counted = intervals.ANY if step is None else self._range_in_counted_loop(start, step, is_after=True)
        self._after[slot] = stepped, intervals.intersect(inside, counted)
        best = inside if step is None else intervals.intersect(inside, self._range_in_counted_loop(start, step))
        assumed = self.bounds.get(slot, FREE)
        if not (intervals.is_at_most(assumed[0], best[0]) and intervals.is_at_most(best[1], assumed[1])):
            was_assumed = self._assumed.pop(slot, None) is not None
            self.bounds[slot] = FREE if was_assumed else ANY
            has_step = step is not None and step.also is None
            if was_assumed and not has_step and start is not ANY and slot not in self._below:
                self._below.add(slot)
                least = 0 if intervals.is_natural(start) else -intervals.FAR_LIMIT  # like the end of a search range
                self.bounds[slot] = self._assumed[slot] = least, start[1]
            return False
        narrower = intervals.intersect(assumed, best if has_checks else stepped)
        if slot in self._narrowed or intervals.are_same(assumed, narrower):
            return True
        self._narrowed.add(slot)
        self.bounds[slot] = narrower
        return False

    def _range_in_counted_loop(self, start: Interval, step: Recurrence, *, is_after: bool = False) -> Interval:
        """The interval of an int in a counted loop, or after it: each iteration before has changed it by its step."""
        if self.max_trips is None or step.also is not None or step.step is None:
            return ANY
        low, high = step.step
        if type(low) is not int or type(high) is not int or (is_after and not is_at_least(self.max_trips, 0)):
            return ANY
        trips = self.max_trips if is_after else self.max_trips - 1
        return start[0] + min(low, 0) * trips, start[1] + max(high, 0) * trips

    def after(self, slot: int, node: Node) -> None:
        """Record what is known of an int after the loop."""
        initial, bounds = self.initial[slot], self.bounds.get(slot, FREE)
        intervals.note(self.tracer, node, self._after.get(slot, (bounds, bounds))[1])
        outer = self.tracer.recurrences.get(initial.node) if type(initial) is Traced else None
        step = self._steps.get(slot)
        if outer is None or step is None:
            return
        # Also the values that this loop sets the int to, changed by its steps since.
        also = [_any_trip_count(one, step._replace(also=None)) for one in (outer.also, step.also) if one is not None]
        restarted = _loop_invariant(intervals.hull(also)) if also else None
        if restarted is None or intervals.is_within(restarted, *FREE):
            small, up, down = (
                getattr(outer, name) and getattr(step, name) for name in ("is_small", "is_up", "is_down")
            )
            self.tracer.recurrences[node] = Recurrence(outer.base, small, up, down, None, restarted)


def _loop_invariant(bounds: Interval) -> Interval:
    """An interval around another one, with bounds that are the same in each iteration."""
    low, high = bounds
    return (
        intervals.lower_limit(low) if is_loop_variant(low) else low,
        intervals.upper_limit(high) if is_loop_variant(high) else high,
    )


def _any_trip_count(begin: Interval, step: Recurrence) -> Interval:
    """The interval of an int that each iteration changes by a step, for any trip count."""
    low, high = begin if step.also is None else intervals.hull([begin, step.also])
    ends = FREE if step.is_small else ANY
    return low if step.is_up else ends[0], high if step.is_down else ends[1]
