"""Nests in loops that go through more than the first cache holds, every second time from the last row to the first.

Caches keep what was read last. Who begins anew at the first row of a matrix in each round finds nothing of it: what was
left of its first rows had to make way for its last ones. Who turns round at the end finds as much as the cache holds:
what it has read itself, or a nest before it.
"""

from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.loops import Loops
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number
from jitkernels.kept import kept_property
from jitkernels.native.language.types import NUMBERS

TURN = "turn"
"""The name by which a nest finds the word of its frame that says which way to go: 0 or 1."""
SHARED_BYTES = 4 << 10
"""Of an array, what it counts for that another nest has just come by it."""
LEAST_BYTES, MOST_BYTES = 20 << 10, 1 << 20
"""What rows read in all, by the call that is traced: less stays in the first cache, and of more too little does."""


class Turning(Loops):
    """Says which nests turn round, and writes how they do."""

    @kept_property
    def turns(self) -> frozenset[int]:
        """The words of the arrays along which rows go that turn round; none where they do not."""
        loop = self.range_loop
        if TURN not in self.function.places or loop is None or loop == self.lane_loop:
            return frozenset()
        if self.directions or self.streamed or self.scanned or self.few:
            return frozenset()
        read = [pair for one in self.targets for pair in self.values.needed(one.node, one.place)]
        bytes_read = self.bytes_along(
            loop, [(self.values.arrays.get(id(node)), place) for node, place in read]
        )  # fmt: skip
        if not LEAST_BYTES <= sum(bytes_read.values()) <= MOST_BYTES:
            return frozenset()
        bytes_written = self.bytes_along(loop, [(one.array, one.where or one.place) for one in self.targets])
        return frozenset(
            word for word, size in {**bytes_written, **bytes_read}.items() if size >= SHARED_BYTES
        )

    def bytes_along(self, loop: int, accesses: list[tuple[Array | None, IndexMap]]) -> dict[int, int]:
        """By the words of arrays, the bytes that the steps of a loop come by, each other ones."""
        found = {}
        for array, place in accesses:
            if array is None:
                continue
            steps = self.values.coefficients(array.strides, place)[1]
            if loop in steps:
                size = extents.product(self.extents[one] for one in steps if one in self.extents)
                found[array.word] = extents.value_of(size) * NUMBERS[array.dtype].size
        return found

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

    def onward(self, loop: int, forwards: Number, backwards: Number) -> str:
        """One of two distances, by the direction in which a loop goes."""
        new, block, far = self.function.new, self.function.block, self.function.extent(forwards)
        if not self.turns or loop != self.range_loop:
            return far
        turned = new(block, f"icmp ne i64 {self.function.extent_of(TURN)}, 0")
        return new(block, f"select i1 {turned}, i64 {self.function.extent(backwards)}, i64 {far}")

    def last_step(self, block: Block, begin: str, end: str, step: int) -> str:
        """Where a loop that goes backwards begins, by steps of a power of two."""
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        before = new(block, f"and i64 {new(block, f'sub nsw i64 {count}, 1')}, {-step}")
        return new(block, f"add nsw i64 {begin}, {before}")
