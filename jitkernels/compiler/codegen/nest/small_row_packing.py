"""Nests whose rows may be short, and are reduced: code of its own for rows of one vector or few, several rows at once.

A row that fits in registers is read once, and nothing of it is kept in memory meanwhile. Of longer ones that are but
reduced a vector of each row is taken at a time: what all rows have to do with is read once for all of them, as the
vector that a matrix is multiplied with, and what is in the lanes of several rows is added up together.

Code is for rows about as long as those of the call that is traced, as all of it would take LLVM three times as long;
others get their own. Where code is for any size it is seen at run time how long rows are. There longer ones, and fewer
than fill a group, are done by the loops that take all.
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
from jitkernels.records import record

LONGEST = 64
"""Vectors of a row of which one is taken at a time: a sum is of no more parts than elsewhere."""
SIMPLE = 48
"""Nodes of a nest up to which it gets code of its own for short rows."""
SUMS = frozenset({"sum", "prod", "min", "max", "any", "all"})
"""What rows are reduced to in steps: no index is kept of what is found."""
APART = frozenset({"gather", "scan", "placed"})
"""What is not computed, or written, for several rows at once."""


@record
class Form:
    """How many rows are done at once, the lanes for each, and a limit of their length if they are taken in steps."""

    rows: int
    columns: int
    limit: int = 0

    @property
    def longest(self) -> int:
        return self.limit or self.columns

    @property
    def is_in_steps(self) -> bool:
        return self.limit > 0


class ShortRows(LoopWriter):
    """Writes the groups of short rows of one nest."""

    def short_rows(self, block: Block) -> bool:
        """What is done and returned from where rows are short; whether they always are."""
        forms, are_all = self._forms()
        for form in forms:
            self._grouped(block, form, always=are_all and form.rows == 1)
        return are_all

    def _forms(self) -> tuple[list[Form], bool]:
        """The forms of code for short rows, and whether all rows are done by them."""
        narrow, _ = self.lanes()
        loops = {target.loops for target in self.targets if target.loops}
        reduces = any(target.reduction for target in self.targets)
        nodes = [node for cone in self.nest.cones for node in cone.nodes]
        simple = len(nodes) <= SIMPLE and not any(node.operation in APART for node in nodes)
        if not (self.order and reduces and simple and loops == {(self.lane_loop,)} and narrow >= 4):
            return [], False
        several = 1 if narrow > 8 else 2  # a quotient of 64 bits takes as long as two others: rows overlap
        classes = [
            [Form(8, narrow // 2)], [Form(4, narrow)], [Form(4, 2 * narrow), Form(several, 4 * narrow)],
        ]  # fmt: skip
        inner = [target.reduction for target in self.targets if target.loops]
        if all(one and one[0].options["kind"] in SUMS for one in inner):
            classes[2:] = [[Form(4, 2 * narrow)], [Form(4, narrow, LONGEST * narrow)]]
        assert self.lane_loop is not None, "chosen"
        count = self.extents[self.lane_loop]
        if isinstance(count, Extent) and (self.variant.any_size or is_moving(count)):
            return [one for forms in classes for one in forms], False
        least = 0
        for forms in classes:
            longest = forms[-1].longest
            if extents.value_of(count) <= longest:
                if isinstance(count, Extent):
                    count.guard(count - least, ">", is_choice=True)
                    count.guard(longest - count, ">=", is_choice=True)
                else:
                    forms = [one for one in forms if one.longest >= count][:1]
                if forms[-1].is_in_steps:
                    return forms, False
                return [*forms, *([Form(1, longest)] if forms[-1].rows > 1 else [])], True
            least = longest
        if isinstance(count, Extent):
            count.guard(count - least, ">", is_choice=True)
        return [], False

    def _grouped(self, block: Block, form: Form, *, always: bool) -> None:
        """All rows, if they are short enough, which they may `always` be."""
        rows, columns = form.rows, form.columns
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
        left = new(inside, f"and i64 {count}, {columns - 1}") if form.is_in_steps else count
        masks = self._mask(inside, left, columns), self._mask(inside, left, columns, rows)
        final = new(inside, f"sub nsw i64 {end}, 1")

        def step(one: Block) -> None:
            numbers = [one.index]
            for i in range(1, rows):  # rows behind the end are the last one once more
                number = new(one, f"add nsw i64 {one.index}, {i}")
                less = new(one, f"icmp slt i64 {number}, {end}")
                numbers.append(new(one, f"select i1 {less}, i64 {number}, i64 {final}"))
            group.begin(one, numbers)
            self._group(group, (count, left), masks, in_steps=form.is_in_steps)
            group.reduced.clear()

        is_range = last == self.range_loop
        self._rows(
            inside,
            outer,
            lambda around: self.counted(around, None, begin, end, rows, 1, step, is_range=is_range),
        )
        if always:
            block.lines += inside.lines
            return
        short, after = self.function.label(), self.function.label()
        fits = new(block, f"icmp sle i64 {count}, {form.longest}")
        if rows > 1:
            # A group takes little longer than two rows do one by one: three of four are one.
            there = new(block, f"sub nsw i64 {end}, {begin}")
            if form.is_in_steps:  # sums of these are in another order, which no number of parts may change
                there = self.function.extent(self.extents[last])
            fits = new(block, f"and i1 {fits}, {new(block, f'icmp sge i64 {there}, {rows - rows // 4}')}")
        block.lines += [f"  br i1 {fits}, label %{short}, label %{after}", f"{short}:", *inside.lines]
        block.lines += ["  ret i64 0", f"{after}:"]

    def _group(
        self, group: RowGroup, counts: tuple[str, str], masks: tuple[str, str], *, in_steps: bool
    ) -> None:
        """All phases of a group of rows: of so many columns, and so many that are no whole step."""
        if not in_steps:
            group.at(group.row, "0", masks)
        for phase in range(1, max(target.phase for target in self.targets) + 1):
            targets = [target for target in self.targets if target.phase == phase]
            reductions = [target for target in targets if target.reduction is not None]
            if in_steps:
                found = self._in_steps(group, reductions, counts, masks)
            else:
                found = [self._at_once(group, target) for target in reductions]
            stored = []
            for target in targets:
                if target.reduction is None and target.array is not None:
                    where = group.whole if target.loops else group.row
                    stored.append(
                        (where, target.array, target, group.value(where, target.node, target.place))
                    )
            for target, taken in zip(reductions, found, strict=True):
                assert target.reduction is not None, "chosen"
                result = self._accumulator(target, group.rows)
                taken.give(group.row, result)
                group.reduced[group.key(*target.reduction)] = group.row, result.result(group.row)
            for where, array, target, value in stored:
                group.store(where, array, target.place, value)

    def _at_once(self, group: RowGroup, target: Target) -> Accumulator:
        """What has all elements of rows."""
        numbers = ", ".join(f"i32 {i % group.columns}" for i in range(group.rows * group.columns))
        value = group.in_lanes(group.whole, target.node, target.place)
        found = self._part(target, value.lanes)
        found.take_only(group.whole, value, group.whole.mask, f"<{numbers}>")
        return found

    def _in_steps(
        self, group: RowGroup, targets: list[Target], counts: tuple[str, str], masks: tuple[str, str]
    ) -> list[Accumulator]:
        """What has taken the elements of rows by a vector of each row at a time."""
        found = [self._part(target, group.rows * group.columns) for target in targets]
        for one in found:
            one.is_row = True
            one.begin(group.row)

        def step(inside: Block, on: tuple[str, str] = ("", "")) -> None:
            group.at(inside, inside.index, on)
            for target, one in zip(targets, found, strict=True):
                value = group.in_lanes(group.whole, target.node, target.place)
                one.take(group.whole, value, on[1], "")

        if not found:
            return found
        (count, left), new = counts, self.function.new
        stop = new(group.row, f"sub nsw i64 {count}, {left}")
        self.counted(group.row, self.lane_loop, "0", stop, group.columns, group.columns, step)
        last = Block(group.row, self.lane_loop, stop, group.columns)
        step(last, masks)
        self._where(group.row, new(group.row, f"icmp ne i64 {left}, 0"), last.lines)
        return found

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
