"""Loops that run backwards: those with a direction, and in serpentine order every second time."""

from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.scheduled_nest import ScheduledNest
from jitkernels.compiler.ir.symbolic_dims import Number

DIRECTION = "turn"
"""The symbol whose frame word is the direction: 0 for forwards, 1 for backwards."""


class SerpentineOrder(ScheduledNest):
    """Emits the limits of loops that may run backwards."""

    def either_way(self, block: Block, begin: str, end: str, step: int) -> tuple[str, str, str]:
        """Return where a loop begins and ends, and its step, by the direction word. `step` is a power of two."""
        new = self.function.new
        is_reversed = new(block, f"icmp ne i64 {self.function.extent_of(DIRECTION)}, 0")
        last = self.last_step(block, begin, end, step)
        before, after_last = (new(block, f"sub nsw i64 {begin}, {step}"), new(block, f"add nsw i64 {last}, {step}"))
        first, limit, move = (
            new(block, f"select i1 {is_reversed}, i64 {backward}, i64 {forward}")
            for backward, forward in ((last, begin), (before, after_last), (-step, step))
        )
        return first, limit, move

    def onward(self, loop: int, forwards: Number, backwards: Number) -> str:
        """Select one of two distances by the direction of a loop."""
        new, block, distance = self.function.new, self.function.block, self.function.extent(forwards)
        if not self.schedule.serpentine or loop != self.parallel_loop:
            return distance
        is_reversed = new(block, f"icmp ne i64 {self.function.extent_of(DIRECTION)}, 0")
        return new(block, f"select i1 {is_reversed}, i64 {self.function.extent(backwards)}, i64 {distance}")

    def last_step(self, block: Block, begin: str, end: str, step: int) -> str:
        """The index of the last iteration, where a reversed loop begins. `step` is a power of two."""
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        before = new(block, f"and i64 {new(block, f'sub nsw i64 {count}, 1')}, {-step}")
        return new(block, f"add nsw i64 {begin}, {before}")
