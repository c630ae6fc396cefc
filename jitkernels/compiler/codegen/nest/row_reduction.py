"""Rows that are reduced one by one: whole steps, what these leave of a row, and how all lanes become one number.

Where a loop writes elements of the row that it reads, as in a Cholesky decomposition, that of the round before is taken
by itself, behind all others, and what vectors leave of these by half a vector, and half of that: a processor hands a
number that is on its way to memory to who reads that number, but has whoever reads a vector with it in it wait until it
is there.
"""

from collections.abc import Callable

from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.parts import Steps, whole_steps
from jitkernels.graph.emit.reductions import Accumulator, all_decided
from jitkernels.graph.emit.short_rows import ShortRows
from jitkernels.graph.emit.step_counts import StepCounts
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.extents import is_moving

CHUNK = 4096
"""Elements of which a sum of floats is one part."""
COUNTED = 1 << 30
"""Elements that are counted in 32 bits."""
MOST_HALVED = 8
"""Lanes of vectors whose rows end in halves: each half is code of its own."""


class ReducedRows(ShortRows):
    """Writes the rows of one nest that are reduced to numbers."""

    accumulators: list[Accumulator]

    def _in_two_widths(
        self,
        block: Block,
        loop: int,
        reductions: list[Target],
        narrow: int,
        wide: int,
        step: Callable[[Block], None],
        *,
        is_alone: bool,
    ) -> None:
        """A row that is reduced: by as many vectors as a step takes, if it is as long, and by single ones then.

        Where nothing else `is` done `alone` with it, it ends with the part that decides what is found.
        """
        first, end = self._limits(loop)
        new = self.function.new
        is_fresh = self._is_fresh(reductions) and narrow == wide <= MOST_HALVED
        if is_fresh:
            some = new(block, f"icmp sgt i64 {end}, {first}")
            one_less = new(block, f"zext i1 {some} to i64")
            if self._begins_fresh(loop):
                fresh, first = first, new(block, f"add nsw i64 {first}, {one_less}")
            else:
                fresh = end = new(block, f"sub nsw i64 {end}, {one_less}")
        rest = [self._rest(target, narrow) for target in reductions]
        for one in rest:
            one.begin(block)
        count = new(block, f"sub nsw i64 {end}, {first}")
        whole = new(block, f"and i64 {count}, {-wide}")
        stop = new(block, f"add nsw i64 {first}, {whole}")
        inside = Block(block, -1)
        self.accumulators = [self._part(target, wide, is_wide=True) for target in reductions]
        pairs = [*zip(self.accumulators, rest, strict=True)]
        for _, other in pairs:
            other.has_taken = other.is_index
        deciding = [other if other.has_parts else one for one, other in pairs if other.decides]
        if not is_alone or len(deciding) < len(pairs):
            deciding = []
        length = max(CHUNK, wide) if deciding or any(one.in_parts for one in rest) else COUNTED
        counted = [one.longest() for one in self.accumulators if isinstance(one, StepCounts)]
        length = min([length, *counted])
        whole_steps(self, inside, Steps(loop, (first, stop), wide, length, step), pairs, deciding)
        if self.is_filled(loop, wide):
            block.lines += inside.lines
        else:
            self._where(block, new(block, f"icmp sgt i64 {whole}, 0"), inside.lines)
        self.accumulators = rest
        if deciding:
            stop = new(block, f"select i1 {all_decided(block, rest)}, i64 {end}, i64 {stop}")
        if not is_fresh:
            self.single_vectors(block, loop, (first, stop, end), narrow, wide, step)
        settled = Block(block, -1)
        for one in rest:
            one.settle(settled)
        if settled.lines:
            self._where(block, new(block, f"icmp sgt i64 {whole}, {max(CHUNK, wide)}"), settled.lines)
        if is_fresh:
            self._in_half_vectors(block, loop, (first, count), reductions, narrow, step)
            alone = Block(block, loop, fresh)
            step(alone)
            self._where(block, some, alone.lines)
        else:
            self.accumulators = self._given(block, reductions, 1)

    def _is_fresh(self, reductions: list[Target]) -> bool:
        """Whether an element of the row may just have been written; of sums alone halves take an addition or two."""
        kinds = [target.reduction[0].options["kind"] for target in reductions if target.reduction]
        return self.variant.is_fresh and not self.order and all(kind in ("sum", "prod") for kind in kinds)

    def _begins_fresh(self, loop: int) -> bool:
        """Whether that element is the first: of what begins elsewhere in each round, and ends at the same place."""
        return any(
            one == loop and is_moving(start) and not is_moving(start + self.extents[loop] * step)
            for target in self.targets
            for node, place in self.values.needed(target.node, target.place)
            if id(node) in self.values.arrays
            for start, steps in place
            for one, step in steps
        )

    def _in_half_vectors(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        reductions: list[Target],
        lanes: int,
        step: Callable[[Block], None],
    ) -> None:
        """What whole vectors left of a row, from its first element and how many it has: half a vector, half of that."""
        first, count = limits
        new = self.function.new
        while lanes > 1:
            here = new(block, f"add nsw i64 {first}, {new(block, f'and i64 {count}, {-lanes}')}")
            lanes //= 2
            self.accumulators = self._given(block, reductions, lanes)
            some = new(block, f"icmp ne i64 {new(block, f'and i64 {count}, {lanes}')}, 0")
            part = Block(block, loop, here, lanes)
            step(part)
            self._where(block, some, part.lines)

    def _begun(
        self, block: Block, reductions: list[Target], lanes: int, *, is_long: bool
    ) -> list[Accumulator]:
        """Accumulators of so many lanes that have taken nothing."""
        found = [self._accumulator(target, lanes, is_long=is_long) for target in reductions]
        for one in found:
            one.begin(block)
        return found

    def _given(self, block: Block, reductions: list[Target], lanes: int) -> list[Accumulator]:
        """Accumulators of so many lanes that have taken what those at hand have."""
        found = self._begun(block, reductions, lanes, is_long=False)
        for one, other in zip(self.accumulators, found, strict=True):
            one.give(block, other)
        return found
