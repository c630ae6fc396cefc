"""Peel iterations to align stores, and decide at run time which stores are streaming stores.

NumPy's arrays begin 16 bytes behind a cache line more often than not, and views begin anywhere. Each 64-byte vector
then straddles two lines, and every second 32-byte vector. Processors commit at most one line per cycle, so that such a
store takes two: on Emerald Rapids the product of two vectors takes 0.93 ns for a line instead of 0.45 in L1, and 2.9
instead of 1.9 in L2. A first masked vector up to the boundary aligns those behind it. Loads that straddle cost less, as
caches serve two in a cycle; where all arrays have the same misalignment, as NumPy's have, they are aligned too. On
processors where they cost as much, aligned loads are kept aligned, unless that makes more stores straddle.
"""

from itertools import product

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.serpentine_order import SerpentineOrder
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.store_rules import MIN_PEELED_VECTORS, loads_beside
from jitkernels.core import cpu_target
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

LOAD_QUARTER_CYCLES, STORE_QUARTER_CYCLES = 4, 8
"""What a vector takes that is loaded or stored as two halves (`cpu_target.Target.accesses_halves`)."""
STRADDLING_LOAD, STRADDLING_STORE = 4, 5
"""What is added where halves straddle; a vector that straddles between them takes one more."""


class AlignedStores(SerpentineOrder):
    """Emits peeled iterations, and tests of streaming stores. `accumulates`: the current loops reduce."""

    accumulates = False

    @property
    def aligned_store(self) -> NestTarget | None:
        """The output that the lane loop aligns in the current loops."""
        aligned = self.schedule.aligned
        return None if self.accumulates or aligned is None else self.targets[aligned]

    def peeled_end(self, block: Block, target: NestTarget, limits: tuple[str, str]) -> str:
        """Return where aligned vectors begin; where aligning does not pay or nothing is to be peeled, the end."""
        new, (begin, end), size = self.function.new, limits, NUMBERS[target.output.dtype].size
        vector = CACHE_LINE_BYTES if self.schedule.streamed else min(self.lanes * size, CACHE_LINE_BYTES)
        _, pointer, _ = self.values.address(block, target.output, target.where or target.index_map)
        first = new(block, f"ptrtoint ptr {pointer} to i64")
        if begin != "0":
            first = new(block, f"add i64 {first}, {new(block, f'mul i64 {begin}, {size}')}")
        padding = new(block, f"and i64 {new(block, f'sub i64 0, {first}')}, {vector - 1}")
        steps = new(block, f"lshr i64 {padding}, {size.bit_length() - 1}")
        count = new(block, f"sub nsw i64 {end}, {begin}")
        pays = self.are_many if self.schedule.streamed else "false"
        if self.schedule.peels_long:
            gain = "1"
            if cpu_target.target().accesses_halves:
                gain = self._gain(block, first, (begin, vector))
            least = MIN_PEELED_VECTORS * self.lanes * (1 if gain == "1" else STRADDLING_LOAD)
            is_long = new(block, f"icmp sge i64 {new(block, f'mul nsw i64 {count}, {gain}')}, {least}")
            pays = new(block, f"or i1 {pays}, {is_long}")
        for condition in (f"icmp ne i64 {steps}, 0", f"icmp slt i64 {steps}, {count}"):
            pays = new(block, f"and i1 {pays}, {new(block, condition)}")
        line = new(block, f"add nsw i64 {begin}, {steps}")
        return new(block, f"select i1 {pays}, i64 {line}, i64 {end}")

    def least_peeled(self) -> int:
        """The least iterations of a loop for which `peeled_end` may say that peeling pays: streaming needs all."""
        if self.schedule.streamed:
            return 1
        least, gain = MIN_PEELED_VECTORS * self.lanes, 1
        if cpu_target.target().accesses_halves:
            loads = loads_beside(self.loops, self.schedule.aligned or 0)
            least, gain = least * STRADDLING_LOAD, STRADDLING_LOAD * len(loads) + STRADDLING_STORE
        return max(least // gain, 1)

    def _gain(self, block: Block, stored: str, where: tuple[str, int]) -> str:
        """How much less a vector costs if those that are stored are aligned, to the disadvantage of aligned loads.

        `stored`: the address of the first element that is stored; `where`: its index, and the bytes of a vector.
        """
        new, (begin, vector) = self.function.new, where
        loads = loads_beside(self.loops, self.schedule.aligned or 0)
        before = after = str(LOAD_QUARTER_CYCLES * len(loads))
        for array, index_map in loads:
            _, pointer, _ = self.values.address(block, array, index_map)
            loaded = new(block, f"ptrtoint ptr {pointer} to i64")
            if begin != "0":
                moved = new(block, f"mul i64 {begin}, {NUMBERS[array.dtype].size}")
                loaded = new(block, f"add i64 {loaded}, {moved}")
            behind = new(block, f"sub i64 {loaded}, {stored}")
            before = new(block, f"add i64 {before}, {self._straddling(block, loaded, vector, STRADDLING_LOAD)}")
            after = new(block, f"add i64 {after}, {self._straddling(block, behind, vector, STRADDLING_LOAD)}")
        store = new(
            block, f"add i64 {STORE_QUARTER_CYCLES}, {self._straddling(block, stored, vector, STRADDLING_STORE)}"
        )
        return new(
            block,
            f"sub i64 {self._larger(block, before, store)}, {self._larger(block, after, str(STORE_QUARTER_CYCLES))}",
        )

    def _larger(self, block: Block, one: str, other: str) -> str:
        is_larger = self.function.new(block, f"icmp sgt i64 {one}, {other}")
        return self.function.new(block, f"select i1 {is_larger}, i64 {one}, i64 {other}")

    def _straddling(self, block: Block, address: str, vector: int, cost: int) -> str:
        """The cost of vectors from an address on: `cost` where halves of a line straddle, 1 where whole ones do."""
        new = self.function.new
        halves = new(block, f"icmp ne i64 {new(block, f'and i64 {address}, {CACHE_LINE_BYTES // 2 - 1}')}, 0")
        whole = new(block, f"icmp ne i64 {new(block, f'and i64 {address}, {vector - 1}')}, 0")
        return new(block, f"select i1 {halves}, i64 {cost}, i64 {new(block, f'zext i1 {whole} to i64')}")

    @unlocked_cached_property
    def are_many(self) -> str:
        """Whether the range is so large that full cache lines of `streamed` are stored by streaming stores.

        All the arrays must reach a cache line boundary at once, and none may be one that is read.
        """
        array, *others = self.streamed
        new, block = self.function.new, self.function.block
        count, least = (
            new(block, "sub nsw i64 %end, %begin"),
            max(self.schedule.stream_bytes // NUMBERS[array.dtype].size, 1),
        )
        if self.parallel_loop != self.lane_loop:
            count = new(block, f"mul nsw i64 {count}, {self.function.extent(self.extents[self.vector_loop])}")
        is_large = new(block, f"icmp sge i64 {count}, {max(least, CACHE_LINE_BYTES)}")
        for other in others:
            distance = new(block, f"sub i64 {self._first_of(block, other.word)}, {self._first_of(block, array.word)}")
            misalignment = new(block, f"and i64 {distance}, {CACHE_LINE_BYTES - 1}")
            is_large = new(block, f"and i1 {is_large}, {new(block, f'icmp eq i64 {misalignment}, 0')}")
        for streamed_array, word in product(self.streamed, sorted(self.loops.read_words)):
            firsts = self._first_of(block, streamed_array.word), self._first_of(block, word)
            is_large = new(block, f"and i1 {is_large}, {new(block, 'icmp ne i64 {}, {}'.format(*firsts))}")
        return is_large

    def _first_of(self, block: Block, word: int) -> str:
        """The address of the array at a frame word."""
        return self.function.load_slot(block, word)
