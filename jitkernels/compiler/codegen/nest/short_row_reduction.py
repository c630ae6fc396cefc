"""Nests with short reduced rows: specialized code that computes several rows at once, each in one or few vectors.

A row that fits in registers is loaded once, and nothing of it is stored meanwhile. Of longer rows that are only
reduced one vector per row is taken at a time: operands that all rows share, as the vector of a matrix-vector product,
are loaded once for all of them, and the lanes of several rows are reduced together.

Which rows those are is in the schedule (`NestSchedule.packed`).
"""

from collections.abc import Callable

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.divide_by_row_sum import has_fma
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.accumulators import Accumulator
from jitkernels.compiler.codegen.nest.bool_argmax import BoolArgmax
from jitkernels.compiler.codegen.nest.chunked_row_loop import VectorLoop, emit_full_vectors
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter, LoopSpec
from jitkernels.compiler.codegen.nest.narrow_argmax import NarrowArgmax
from jitkernels.compiler.codegen.nest.row_vectors import RowGroup
from jitkernels.compiler.schedule.nest.nest_schedule import RowPacking
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.microkernels.maths.blocked_summation import ADDS


class ShortRows(LoopEmitter):
    """Emits the packed short rows of one nest."""

    def short_rows(self, block: Block) -> bool:
        """Emit code that handles short rows and returns; return whether all rows are short."""
        schedule = self.schedule
        for form in schedule.packed:
            self._grouped(block, form, always=schedule.packs_all and form.rows == 1)
        return schedule.packs_all

    def _grouped(self, block: Block, form: RowPacking, *, always: bool) -> None:
        """Emit all rows by groups, under a test of their length unless they are short in any case (`always`)."""
        rows, columns = form.rows, form.columns
        new, loop = self.function.new, self.vector_loop
        count, inside = self.function.extent(self.extents[loop]), Block(block, -1)
        *outer, last = self.order
        begin, end = self._limits(last)
        # Fewer vectors, or 32-bit ones, are divided in parallel with other instructions.
        narrow = self.lanes
        divides_long = narrow == self.schedule.vector_bytes // 8 and rows * columns >= 8 * narrow
        group = RowGroup(
            self.function,
            loop,
            self.values.arrays,
            self.values.inside,
            keeps_fp_flags_exact=self.values.keeps_fp_flags_exact,
            row_loop=last,
            rows=rows,
            columns=columns,
            multiplies=has_fma() and divides_long,
        )
        remainder = new(inside, f"and i64 {count}, {columns - 1}") if form.is_in_steps else count
        masks = self._mask(inside, remainder, columns), self._mask(inside, remainder, columns, rows)
        final = new(inside, f"sub nsw i64 {end}, 1")

        def step(group_block: Block) -> None:
            numbers = [group_block.index]
            for i in range(1, rows):  # rows behind the end repeat the last one
                number = new(group_block, f"add nsw i64 {group_block.index}, {i}")
                is_less = new(group_block, f"icmp slt i64 {number}, {end}")
                numbers.append(new(group_block, f"select i1 {is_less}, i64 {number}, i64 {final}"))
            group.begin(group_block, numbers)
            self._group(group, (count, remainder), masks, in_steps=form.is_in_steps)
            group.reduced.clear()

        is_range = last == self.parallel_loop
        self._rows(
            inside,
            outer,
            lambda around: self.emit_loop(around, LoopSpec(None, begin, end, rows, is_range=is_range), step),
        )
        if always:
            block.lines += inside.lines
            return
        short, after = self.function.label(), self.function.label()
        fits = new(block, f"icmp sle i64 {count}, {form.longest}")
        if rows > 1:
            # A group takes little longer than two single rows: three rows of four run as a group.
            row_count = new(block, f"sub nsw i64 {end}, {begin}")
            if form.is_in_steps:  # their sums have another order, which must not depend on the number of threads
                row_count = self.function.extent(self.extents[last])
            fits = new(block, f"and i1 {fits}, {new(block, f'icmp sge i64 {row_count}, {rows - rows // 4}')}")
        block.lines += [f"  br i1 {fits}, label %{short}, label %{after}", f"{short}:", *inside.lines]
        block.lines += ["  ret i64 0", f"{after}:"]

    def _group(self, group: RowGroup, counts: tuple[str, str], masks: tuple[str, str], *, in_steps: bool) -> None:
        """Emit all phases of a group of rows; `counts`: the columns, and those of the remainder."""
        if not in_steps:
            group.at(group.row, "0", masks)
        for phase in range(1, max(target.phase for target in self.targets) + 1):
            targets = [target for target in self.targets if target.phase == phase]
            reductions = [target for target in targets if target.reduction is not None]
            if in_steps:
                accumulators = self._in_steps(group, reductions, counts, masks)
            else:
                accumulators = [self._at_once(group, target) for target in reductions]
            stored = []
            for target in targets:
                if target.reduction is None and target.array is not None:
                    home = group.whole if target.loops else group.row
                    stored.append((home, target.array, target, group.value(home, target.node, target.index_map)))
            for target, partial in zip(reductions, accumulators, strict=True):
                result = self._accumulator(target, group.rows)
                partial.combine_into(group.row, result)
                group.reduced[group.key(*target.reduced)] = group.row, result.result(group.row)
            for home, array, target, value in stored:
                group.store(home, array, target.index_map, value)

    def _at_once(self, group: RowGroup, target: NestTarget) -> Accumulator:
        """An accumulator that has all elements of the rows."""
        numbers = ", ".join(f"i32 {i % group.columns}" for i in range(group.rows * group.columns))
        value = group.in_lanes(group.whole, target.node, target.index_map)
        result = self._part(target, value.lanes)
        result.store_only(group.whole, value, group.whole.mask, f"<{numbers}>")
        return result

    def _in_steps(
        self, group: RowGroup, targets: list[NestTarget], counts: tuple[str, str], masks: tuple[str, str]
    ) -> list[Accumulator]:
        """Accumulators that take the rows by a vector of each row at a time."""
        lanes = group.rows * group.columns
        parts = [self._part(target, lanes) for target in targets]
        accumulators = [self._accumulator(target, lanes, is_long=True) for target in targets]
        for accumulator in accumulators:
            accumulator.is_row, accumulator.has_single_group = True, True
            accumulator.begin(group.row)
        current = parts

        def step(inside: Block, lane_masks: tuple[str, str] = ("", "")) -> None:
            group.at(inside, inside.index, lane_masks)
            for target, accumulator in zip(targets, current, strict=True):
                value = group.in_lanes(group.whole, target.node, target.index_map)
                accumulator.accumulate_element(group.whole, value, lane_masks[1], "")

        if not accumulators:
            return accumulators
        (count, left), new = counts, self.function.new
        stop = new(group.row, f"sub nsw i64 {count}, {left}")
        length = ADDS * group.columns
        steps = VectorLoop(self.vector_loop, ("0", stop), group.columns, length, step)
        whole = Block(group.row, -1)
        emit_full_vectors(self, whole, steps, [*zip(parts, accumulators, strict=True)], [])
        self._emit_if(group.row, new(group.row, f"icmp sgt i64 {stop}, 0"), whole.lines)
        current = accumulators
        last = Block(group.row, self.lane_loop, stop, group.columns)
        step(last, masks)
        self._emit_if(group.row, new(group.row, f"icmp ne i64 {left}, 0"), last.lines)
        return accumulators

    def _rows(self, block: Block, loops: list[int], body: Callable[[Block], None]) -> None:
        """Emit the nested row loops around `body`."""
        if not loops:
            body(block)
            return
        loop, *inner = loops
        self._loop(block, loop, self._limits(loop), lambda inside: self._rows(inside, inner, body))

    def _accumulator(self, target: NestTarget, lanes: int, *, is_long: bool = False) -> Accumulator:
        """An accumulator of a target's elements, with 64-bit indices."""
        node = target.reduced[0]
        kind = node.options["kind"]
        dtype = target.node.dtype if kind in ("argmin", "argmax") else node.dtype
        return Accumulator(self.values, kind, dtype, lanes, is_long)

    def _part(self, target: NestTarget, lanes: int, *, is_wide: bool = False) -> Accumulator:
        """An accumulator of a chunk's elements; `is_wide`: with as many lanes as an iteration."""
        result = self._accumulator(target, lanes)
        if result.is_index and result.dtype == "bool":
            return BoolArgmax(self.values, result.kind, result.dtype, lanes, index_dtype="int32")
        size = NUMBERS[result.inner].size
        if is_wide and result.is_index and size < 4 and lanes > 1:
            return NarrowArgmax(self.values, result.kind, result.dtype, lanes, index_dtype=f"int{8 * size}")
        return Accumulator(self.values, result.kind, result.dtype, lanes, index_dtype="int32")

    def _rest(self, target: NestTarget, lanes: int) -> Accumulator:
        """An accumulator of chunk results and of a row's remainder."""
        result = self._accumulator(target, lanes, is_long=True)
        if result.is_index and result.dtype == "bool" and lanes > 1:
            return BoolArgmax(self.values, result.kind, result.dtype, lanes, is_long=True)
        return result
