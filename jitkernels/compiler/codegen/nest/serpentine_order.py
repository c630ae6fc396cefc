"""Serpentine order: loop nests in loops traverse data larger than L1 alternately forwards and backwards.

Caches keep what was read last. A nest that starts at the first row of a matrix in every iteration finds nothing of it
there: the last rows evicted the first. One that reverses at the end finds as much as the cache holds: what it has
read itself, or a nest before it.
"""

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.loop_order import Loops
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.core.cached_property import unlocked_cached_property

DIRECTION = "turn"
"""The symbol whose frame word is the direction: 0 for forwards, 1 for backwards."""
SHARED_BYTES = 4 << 10
"""The least bytes of an array for which it matters that another nest has just traversed it."""
MIN_SERPENTINE_BYTES, MAX_SERPENTINE_BYTES = 20 << 10, 1 << 20
"""The bytes that all rows load, in the traced call: less stays in L1 anyway, and of more too little does."""


class SerpentineOrder(Loops):
    """Decides which nests run in serpentine order, and emits their loops."""

    @unlocked_cached_property
    def serpentine_words(self) -> frozenset[int]:
        """The frame words of the arrays that rows traverse in serpentine order; none where they do not."""
        loop = self.range_loop
        if DIRECTION not in self.function.symbol_slots or loop is None or loop == self.lane_loop:
            return frozenset()
        if self.directions or self.streamed or self.scanned or self.short_lanes:
            return frozenset()
        read = [pair for target in self.targets for pair in self.values.needed(target.node, target.index_map)]
        bytes_read = self.bytes_along(
            loop, [(self.values.arrays.get(node), index_map) for node, index_map in read]
        )  # fmt: skip
        if not MIN_SERPENTINE_BYTES <= sum(bytes_read.values()) <= MAX_SERPENTINE_BYTES:
            return frozenset()
        bytes_written = self.bytes_along(
            loop, [(target.array, target.where or target.index_map) for target in self.targets]
        )
        return frozenset(word for word, size in {**bytes_written, **bytes_read}.items() if size >= SHARED_BYTES)

    def bytes_along(self, loop: int, accesses: list[tuple[StridedArray | None, IndexMap]]) -> dict[int, int]:
        """By frame word, the bytes of an array that a loop traverses, different ones in each iteration."""
        result = {}
        for array, access_map in accesses:
            if array is None:
                continue
            steps = self.values.coefficients(array.strides, access_map)[1]
            if loop in steps:
                size = symbolic_dims.product(self.extents[step] for step in steps if step in self.extents)
                result[array.word] = symbolic_dims.value_of(size) * NUMBERS[array.dtype].size
        return result

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
        if not self.serpentine_words or loop != self.range_loop:
            return distance
        is_reversed = new(block, f"icmp ne i64 {self.function.extent_of(DIRECTION)}, 0")
        return new(block, f"select i1 {is_reversed}, i64 {self.function.extent(backwards)}, i64 {distance}")

    def last_step(self, block: Block, begin: str, end: str, step: int) -> str:
        """The index of the last iteration, where a reversed loop begins. `step` is a power of two."""
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        before = new(block, f"and i64 {new(block, f'sub nsw i64 {count}, 1')}, {-step}")
        return new(block, f"add nsw i64 {begin}, {before}")
