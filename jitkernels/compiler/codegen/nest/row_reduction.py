"""Row reductions: an unrolled main loop, the remainder, and a horizontal reduction.

Where a loop stores elements of the row that it loads, as in a Cholesky decomposition, the element of the previous
iteration is loaded by itself, last, and the remainder of the others by half a vector, a quarter, and so on:
processors forward a store in flight to a load of the same number, but a vector load that contains it waits until the
store is done.
"""

from collections.abc import Callable

from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.accumulators import Accumulator, all_decided
from jitkernels.compiler.codegen.nest.chunked_row_loop import VectorLoop, emit_full_vectors
from jitkernels.compiler.codegen.nest.narrow_argmax import NarrowArgmax
from jitkernels.compiler.codegen.nest.short_row_reduction import ShortRows
from jitkernels.compiler.schedule.nest.nest_schedule import PhaseSchedule, RecentStore
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.microkernels.maths.blocked_summation import ADDS

SEARCHED = 4096
"""The elements of a row between two early exits of a search."""
MAX_INDEX32_ELEMENTS = 1 << 30
"""The most elements that 32-bit indices address."""


class ReducedRows(ShortRows):
    """Emits the row reductions of one nest."""

    accumulators: list[Accumulator]
    phase: PhaseSchedule

    def _reduce_row(
        self, block: Block, loop: int, reductions: list[NestTarget], step: Callable[[Block], None], *, is_alone: bool
    ) -> None:
        """Emit a row reduction: unrolled vectors, if the row is long enough, and then single ones.

        With `is_alone` there is nothing else to compute, and the row ends behind the chunk that decides the result.
        """
        first, end = self._limits(loop)
        new, narrow, wide, recent = self.function.new, self.lanes, self.step_lanes, self.phase.recent_store
        if recent:
            is_nonempty = new(block, f"icmp sgt i64 {end}, {first}")
            skipped = new(block, f"zext i1 {is_nonempty} to i64")
            if recent is RecentStore.FIRST:
                recent_index, first = first, new(block, f"add nsw i64 {first}, {skipped}")
            else:
                recent_index = end = new(block, f"sub nsw i64 {end}, {skipped}")
        rest = self._initialize(block, [self._rest(target, narrow) for target in reductions])
        count = new(block, f"sub nsw i64 {end}, {first}")
        main_count = new(block, f"and i64 {count}, {-wide}")
        main_end, inside = new(block, f"add nsw i64 {first}, {main_count}"), Block(block, -1)
        self.accumulators = [self._part(target, wide, is_wide=True) for target in reductions]
        pairs = [*zip(self.accumulators, rest, strict=True)]
        for _, other in pairs:
            other.has_elements = other.is_index
        deciding = [of_row if of_row.has_parts else of_chunk for of_chunk, of_row in pairs if of_row.decides]
        if not is_alone or len(deciding) < len(pairs):
            deciding = []
        length = self._part_length(rest, ADDS * wide, max(SEARCHED, wide) if deciding else MAX_INDEX32_ELEMENTS)
        emit_full_vectors(self, inside, VectorLoop(loop, (first, main_end), wide, length, step), pairs, deciding)
        if self.schedule.fills_step:
            block.lines += inside.lines
        else:
            self._emit_if(block, new(block, f"icmp sgt i64 {main_count}, 0"), inside.lines)
        self.accumulators = rest
        if deciding:
            main_end = new(block, f"select i1 {all_decided(block, rest)}, i64 {end}, i64 {main_end}")
        if not recent:
            self.single_vectors(block, loop, (first, main_end, end), step)
        settled = Block(block, -1)
        for accumulator in rest:
            accumulator.fold_parts(settled)
        if settled.lines:
            self._emit_if(block, new(block, f"icmp sgt i64 {main_count}, {ADDS * wide}"), settled.lines)
        if recent:
            self._in_half_vectors(block, loop, (first, count), reductions, step)
            alone = Block(block, loop, recent_index)
            step(alone)
            self._emit_if(block, is_nonempty, alone.lines)
        else:
            self.accumulators = self._combine_lanes(block, reductions, 1)

    def _part_length(self, rest: list[Accumulator], summed: int, most: int) -> int:
        """The elements of a chunk, a power of two: `summed` for float sums, else as many as indices can count."""
        counted = [accumulator.longest() for accumulator in self.accumulators if isinstance(accumulator, NarrowArgmax)]
        least = min([summed if any(accumulator.in_parts for accumulator in rest) else most, *counted])
        return 1 << (least.bit_length() - 1)

    def _in_half_vectors(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        reductions: list[NestTarget],
        step: Callable[[Block], None],
    ) -> None:
        """Emit the remainder of a row, given its first element and its length: half a vector, a quarter, and so on."""
        first, count = limits
        new, lanes = self.function.new, self.lanes
        while lanes > 1:
            here = new(block, f"add nsw i64 {first}, {new(block, f'and i64 {count}, {-lanes}')}")
            lanes //= 2
            self.accumulators = self._combine_lanes(block, reductions, lanes)
            is_set = new(block, f"icmp ne i64 {new(block, f'and i64 {count}, {lanes}')}, 0")
            part = Block(block, loop, here, lanes)
            step(part)
            self._emit_if(block, is_set, part.lines)

    def _new_accumulators(
        self, block: Block, reductions: list[NestTarget], lanes: int, *, is_long: bool
    ) -> list[Accumulator]:
        """Initialized accumulators of so many lanes."""
        return self._initialize(block, [self._accumulator(target, lanes, is_long=is_long) for target in reductions])

    def _initialize(self, block: Block, accumulators: list[Accumulator]) -> list[Accumulator]:
        for accumulator in accumulators:
            accumulator.begin(block)
        return accumulators

    def _combine_lanes(self, block: Block, reductions: list[NestTarget], lanes: int) -> list[Accumulator]:
        """Accumulators of so many lanes, with the current ones combined into them."""
        result = self._new_accumulators(block, reductions, lanes, is_long=False)
        for accumulator, other in zip(self.accumulators, result, strict=True):
            accumulator.combine_into(block, other)
        return result
