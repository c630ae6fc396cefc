"""Nests whose rows may be short, and are reduced: code of its own for rows of one vector or few, several rows at once.

A row that fits in registers is read once, and nothing of it is kept in memory meanwhile. Code is for rows about as long
as those of the call that is traced, as all of it would take LLVM three times as long; others get their own. Where code
is for any size it is seen at run time how long rows are. There longer ones, and fewer than fill a group, are done by
the loops that take all.
"""

from collections.abc import Callable

from jitkernels.graph import extents
from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.first_found import FirstFound
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.quotients import is_possible
from jitkernels.graph.emit.reductions import Accumulator
from jitkernels.graph.emit.row_groups import RowGroup
from jitkernels.graph.emit.step_counts import StepCounts
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.extents import Extent, is_moving
from jitkernels.native.language.types import NUMBERS

SIMPLE = 48
"""Nodes of a nest up to which it gets code of its own for short rows."""
APART = frozenset({"gather", "scan", "placed"})
"""What is not computed, or written, for several rows at once."""


class ShortRows(LoopWriter):
    """Writes the groups of short rows of one nest."""

    def short_rows(self, block: Block) -> bool:
        """What is done and returned from where rows are short; whether they always are."""
        groups, are_all = self._groups()
        for rows, columns in groups:
            self._grouped(block, rows, columns, always=are_all and rows == 1)
        return are_all

    def _groups(self) -> tuple[list[tuple[int, int]], bool]:
        """How many short rows are done at once, and lanes for each; and whether all rows are done so."""
        narrow, _ = self.lanes()
        loops = {target.loops for target in self.targets if target.loops}
        reduces = any(target.reduction for target in self.targets)
        nodes = [node for cone in self.nest.cones for node in cone.nodes]
        simple = len(nodes) <= SIMPLE and not any(node.operation in APART for node in nodes)
        if not (self.order and reduces and simple and loops == {(self.lane_loop,)} and narrow >= 4):
            return [], False
        several = 1 if narrow > 8 else 2  # a quotient of 64 bits takes as long as two others: rows overlap
        classes = [
            [(8, narrow // 2)], [(4, narrow)], [(4, 2 * narrow), (several, 4 * narrow)],
        ]  # fmt: skip
        assert self.lane_loop is not None, "chosen"
        count = self.extents[self.lane_loop]
        if isinstance(count, Extent) and (self.variant.any_size or is_moving(count)):
            return [one for groups in classes for one in groups], False
        least = 0
        for groups in classes:
            longest = groups[-1][1]
            if extents.value_of(count) <= longest:
                if isinstance(count, Extent):
                    count.guard(count - least, ">", is_choice=True)
                    count.guard(longest - count, ">=", is_choice=True)
                else:
                    groups = [one for one in groups if one[1] >= count][:1]
                return [*groups, *([(1, longest)] if groups[-1][0] > 1 else [])], True
            least = longest
        if isinstance(count, Extent):
            count.guard(count - least, ">", is_choice=True)
        return [], False

    def _grouped(self, block: Block, rows: int, columns: int, *, always: bool) -> None:
        """All rows, if they are short enough, which they may `always` be."""
        new, loop = self.function.new, self.lane_loop
        assert loop is not None, "chosen"
        count, inside = self.function.extent(self.extents[loop]), Block(block, -1)
        *outer, last = self.order
        begin, end = self._limits(last)
        # In fewer vectors, or of 32 bits, the processor divides while it does something else.
        narrow, _ = self.lanes()
        divides_long = narrow == self.variant.vector_bytes // 8 and rows * columns >= 8 * narrow
        group = RowGroup(
            self.function,
            loop,
            self.values.arrays,
            self.values.inside,
            is_delicate=self.values.is_delicate,
            row_loop=last,
            rows=rows,
            columns=columns,
            multiplies=is_possible() and divides_long,
        )
        masks = self._mask(inside, count, columns), self._mask(inside, count, columns, rows)
        final = new(inside, f"sub nsw i64 {end}, 1")

        def step(one: Block) -> None:
            numbers = [one.index]
            for i in range(1, rows):  # rows behind the end are the last one once more
                number = new(one, f"add nsw i64 {one.index}, {i}")
                less = new(one, f"icmp slt i64 {number}, {end}")
                numbers.append(new(one, f"select i1 {less}, i64 {number}, i64 {final}"))
            group.begin(one, numbers, masks)
            self._group(group)
            group.reduced.clear()

        self._rows(inside, outer, lambda around: self.counted(around, None, begin, end, rows, 1, step))
        if always:
            block.lines += inside.lines
            return
        short, after = self.function.label(), self.function.label()
        fits = new(block, f"icmp sle i64 {count}, {columns}")
        if rows > 1:
            # A group takes little longer than two rows do one by one: three of four are one.
            there = new(block, f"sub nsw i64 {end}, {begin}")
            fits = new(block, f"and i1 {fits}, {new(block, f'icmp sge i64 {there}, {rows - rows // 4}')}")
        block.lines += [f"  br i1 {fits}, label %{short}, label %{after}", f"{short}:", *inside.lines]
        block.lines += ["  ret i64 0", f"{after}:"]

    def _group(self, group: RowGroup) -> None:
        """All phases of a group of rows."""
        numbers = ", ".join(f"i32 {i % group.columns}" for i in range(group.rows * group.columns))
        for phase in range(1, max(target.phase for target in self.targets) + 1):
            stored = []
            for target in self.targets:
                if target.phase != phase:
                    continue
                if target.reduction is None:
                    where = group.whole if target.loops else group.row
                    stored.append((where, target, group.value(where, target.node, target.place)))
                    continue
                value = group.in_lanes(group.whole, target.node, target.place)
                one, result = self._part(target, value.lanes), self._accumulator(target, group.rows)
                one.take_only(group.whole, value, group.whole.mask, f"<{numbers}>")
                one.give(group.whole, result)
                group.reduced[group.key(*target.reduction)] = group.row, result.result(group.row)
            for where, target, value in stored:
                if target.array is not None:
                    group.store(where, target.array, target.place, value)

    def _rows(self, block: Block, loops: list[int], body: Callable[[Block], None]) -> None:
        """The loops of rows, one in another, and what is done in a row."""
        if not loops:
            body(block)
            return
        loop, *inner = loops
        self._loop(block, loop, self._limits(loop), lambda inside: self._rows(inside, inner, body))

    def _accumulator(self, target: Target, lanes: int, *, is_long: bool = False) -> Accumulator:
        """One for the elements of a target; where it is of all there are, or has parts, indices are whole."""
        assert target.reduction is not None, "of a reduction"
        node = target.reduction[0]
        kind = node.options["kind"]
        dtype = target.node.dtype if kind in ("argmin", "argmax") else node.dtype
        return Accumulator(self.values, kind, dtype, lanes, is_long)

    def _part(self, target: Target, lanes: int, *, is_wide: bool = False) -> Accumulator:
        """One for the elements of a part; `is_wide`: of as many as there are lanes in each step."""
        found = self._accumulator(target, lanes)
        if found.is_index and found.dtype == "bool":
            return FirstFound(self.values, found.kind, found.dtype, lanes, index_dtype="int32")
        size = NUMBERS[found.inner].size
        if is_wide and found.is_index and size < 4 and lanes > 1:
            return StepCounts(self.values, found.kind, found.dtype, lanes, index_dtype=f"int{8 * size}")
        return Accumulator(self.values, found.kind, found.dtype, lanes, index_dtype="int32")

    def _rest(self, target: Target, lanes: int) -> Accumulator:
        """One that takes what parts came to, and what is left of a row behind them."""
        found = self._accumulator(target, lanes, is_long=True)
        if found.is_index and found.dtype == "bool" and lanes > 1:
            return FirstFound(self.values, found.kind, found.dtype, lanes, is_long=True)
        return found
