"""Nests in loops that go through more than the first cache holds, every second time from the last row to the first.

Caches keep what was read last. Who begins anew at the first row of a matrix in each round finds nothing of it: what was
left of its first rows had to make way for its last ones. Who turns round at the end finds as much as the cache holds.
"""

from jitkernels.graph import extents
from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.loops import Loops
from jitkernels.kept import kept_property
from jitkernels.native.language.types import NUMBERS

TURN = "turn"
"""The name by which a nest finds the word of its frame that says which way to go: 0 or 1."""
LEAST_BYTES, MOST_BYTES = 20 << 10, 1 << 20
"""What rows read in all, by the call that is traced: less stays in the first cache, and of more too little does."""


class Turning(Loops):
    """Says which nests turn round, and writes how they do."""

    @kept_property
    def turns(self) -> bool:
        """Whether rows, which may come in any order, do so."""
        loop = self.range_loop
        if TURN not in self.function.places or loop is None or loop == self.lane_loop:
            return False
        if self.directions or self.streamed or self.scanned or self.few:
            return False
        return LEAST_BYTES <= self._bytes_of_rows(loop) <= MOST_BYTES

    def _bytes_of_rows(self, loop: int) -> int:
        """The bytes that the steps of a loop read, each other ones."""
        found = {}
        for target in self.targets:
            for node, place in self.values.needed(target.node, target.place):
                array = self.values.arrays.get(id(node))
                if array is None:
                    continue
                steps = self.values.coefficients(array.strides, place)[1]
                if loop in steps:
                    size = extents.product(self.extents[one] for one in steps if one in self.extents)
                    found[array.word] = extents.value_of(size) * NUMBERS[array.dtype].size
        return sum(found.values())

    def either_way(self, block: Block, begin: str, end: str, step: int) -> tuple[str, str, str]:
        """Where a loop by steps of a power of two begins and ends, and its step, whichever way it goes."""
        new = self.function.new
        turned = new(block, f"icmp ne i64 {self.function.extent_of(TURN)}, 0")
        last = self.last_step(block, begin, end, step)
        before, behind = new(block, f"sub nsw i64 {begin}, {step}"), new(block, f"add nsw i64 {last}, {step}")
        first, limit, move = (
            new(block, f"select i1 {turned}, i64 {one}, i64 {other}")
            for one, other in ((last, begin), (before, behind), (-step, step))
        )
        return first, limit, move

    def last_step(self, block: Block, begin: str, end: str, step: int) -> str:
        """Where a loop that goes backwards begins, by steps of a power of two."""
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        before = new(block, f"and i64 {new(block, f'sub nsw i64 {count}, 1')}, {-step}")
        return new(block, f"add nsw i64 {begin}, {before}")
