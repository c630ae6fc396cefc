"""Emit one loop nest as a function ``i64 @name(ptr frame, i64 begin, i64 end)`` of a range of its outermost loop.

Rows are the outer loops. Every row runs phases: reductions whose inputs are known, with the other outputs of the same
loops; the columns of an output are stored in the phase behind its last reduction. The loop along which most arrays
have unit stride is vectorized: its iterations are lanes. If that is a loop of columns, a reduction ends with a
horizontal reduction per row. If it is a loop of rows, every lane is a row of its own.
"""

from collections.abc import Callable
from dataclasses import replace

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type, memory_type
from jitkernels.compiler.codegen.nest.accumulators import Accumulator
from jitkernels.compiler.codegen.nest.chunked_row_loop import PartCounter, combine_parts
from jitkernels.compiler.codegen.nest.loop_emitter import LoopSpec
from jitkernels.compiler.codegen.nest.narrow_argmax import NarrowArgmax
from jitkernels.compiler.codegen.nest.row_reduction import ReducedRows
from jitkernels.compiler.codegen.nest.store_prefetch import StorePrefetch
from jitkernels.compiler.codegen.nest.transposed_loads import TransposedLoads
from jitkernels.compiler.codegen.nest.unroll_and_jam import UnrollJam
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.phase_rules import first_reads
from jitkernels.compiler.schedule.nest.scratch_values import scratch_of
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.maths.blocked_summation import ADDS

MAX_PREFETCH_DISTANCE = 1 << 18
"""The largest prefetch distance in bytes; rows that are shorter are prefetched one ahead."""
STREAM_PREFETCH_DISTANCE = 1 << 12
"""The same for arrays that are read once, over all arrays: into L2, as much as is in flight at a time."""


class NestEmitter(ReducedRows, UnrollJam, StorePrefetch, TransposedLoads):
    """Emits one loop nest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.accumulators: list[Accumulator] = []
        self.part_counter: PartCounter | None = None
        self.scratch_values = [*map(replace, self.loops.scratch_values)]  # whose arrays `_begin_streams` redirects

    def text(self) -> str:
        block = self.function.block
        if not self.short_rows(block):
            self._rows(block, self.order, self._row)
        self.end_of_streams(block)
        body = "\n".join([*self.function.memory, *block.lines])
        return (
            f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end)"
            f" noinline nounwind {{\n{body}\n"
            f"  ret i64 0\n}}"
        )

    def _row(self, block: Block) -> None:
        """Emit all phases of one row, or of as many rows as there are lanes."""
        # Values computed in the text of other iterations are not available here.
        self.values.reduced.clear()
        self.values.scratch_of_value.clear()
        self._begin_streams(block)
        for inner, ready in self.loops.phase_loops():
            for _, targets in inner:
                self._phase(block, targets)
            for target in ready:
                value = self.values.value(block, target.node, target.index_map)
                self._store(block, target, value)
            self.prefetch_stores(block, ready)

    def _begin_streams(self, block: Block) -> None:
        """Direct scratch rows of a streamed output to one row for all: the row that is stored last.

        Prefetch the line in which a row ends, which belongs to the next row too: all stores would wait for it.
        """
        if not self.schedule.streamed or block.loop is None:
            return
        new, (array,) = self.function.new, self.streamed
        target = self.targets[self.schedule.streamed[0]]
        _, pointer, _ = self.values.address(block, array, target.index_map)
        count = self.function.extent(self.extents[self.vector_loop])
        end = new(block, f"getelementptr {memory_type(array.dtype)}, ptr {pointer}, i64 {count}")
        self.prefetch(block, end, "i32 1, i32 3")
        if not self.scratch_values:
            return
        last = new(self.function.block, "sub nsw i64 %end, 1")
        row = new(block, f"select i1 {self.are_many}, i64 {last}, i64 {block.index}")
        for scratch in self.scratch_values:
            scratch.array = replace(scratch.output, instead=(block.loop, row))

    def _prefetch_reads(self, block: Block) -> None:
        """Prefetch into L2 what will be loaded.

        Where a row is traversed twice, that is the next row, while the second phase finds this row in the caches. Rows
        that are traversed once prefetch what comes soon: one core's hardware prefetcher does not use the bandwidth.
        """
        if not self.phase.read_prefetch or self.values.mask(block):
            return
        new, reads = self.function.new, first_reads(self.loops)
        for array, index_map, step in reads.values():
            size = NUMBERS[array.dtype].size
            _, pointer, _ = self.values.address(block, array, index_map)
            soon = str(STREAM_PREFETCH_DISTANCE // len(reads) // CACHE_LINE_BYTES * CACHE_LINE_BYTES)
            distance = self._ahead(step, size) if self.phase.number > 1 else soon
            ahead = new(block, f"getelementptr i8, ptr {pointer}, i64 {distance}")
            for line in range(0, self.values.lanes(block) * size // CACHE_LINE_BYTES, self.phase.read_prefetch):
                address = new(block, f"getelementptr i8, ptr {ahead}, i64 {line * CACHE_LINE_BYTES}")
                self.prefetch(block, address, "i32 0, i32 2")

    def _ahead(self, step: Number, size: int) -> str:
        """The bytes to the next row, limited to what L2 holds beside its contents."""
        function, key = self.function, ("ahead", symbolic_dims.key_of(step), size)
        block = function.block
        if key not in block.known:
            row_bytes = function.new(block, f"mul nsw i64 {function.extent(step)}, {size}")
            is_less = function.new(block, f"icmp slt i64 {row_bytes}, {MAX_PREFETCH_DISTANCE}")
            block.known[key] = function.new(block, f"select i1 {is_less}, i64 {row_bytes}, i64 {MAX_PREFETCH_DISTANCE}")
        text: str = block.known[key]
        return text

    def _phase(self, block: Block, targets: list[NestTarget]) -> None:
        """Emit the inner loops of a phase: reductions accumulate, outputs are stored."""
        self.accumulate(block, targets)
        reductions = [target for target in targets if target.reduction is not None]
        for target, accumulator in zip(reductions, self.accumulators, strict=True):
            self.values.reduced[self.values.key(*target.reduced)] = block, accumulator.result(block)
        for scratch in scratch_of(self.scratch_values, targets[0]):
            self.values.scratch_of_value[self.values.key(scratch.node, scratch.index_map)] = scratch.output

    def _store(self, block: Block, target: NestTarget, value: Register) -> None:
        where = target.where if target.node.operation == "placed" else target.index_map
        self.values.store_node(block, target.node, target.index_map, target.output, where, value)

    def accumulate(self, block: Block, targets: list[NestTarget]) -> None:
        """Emit the loops of a phase: its accumulators take all elements, and its outputs are stored."""
        phase = self.phase = self.schedule.phase(targets[0].phase, targets[0].loops)
        loops, wide = [*phase.loops], self.step_lanes
        self.values.column_loop_count += 1
        self.part_counter = None
        reductions = [target for target in targets if target.reduction is not None]
        self.accumulates = bool(reductions)
        scratch_values = scratch_of(self.scratch_values, targets[0])
        if phase.jam is not None:
            self.jam_rows(block, loops, targets, phase.jam)
            return

        def step(inside: Block) -> None:
            if self.lane_loop in loops:
                self._prefetch_reads(inside)
            elif len(loops) == 1 and self.values.lanes(inside) > wide:
                self.prefetch_runs(inside, loops[0], targets)
            # Load everything before any store: an output may alias what another output reads here.
            stored = [
                (target, self.values.value(inside, target.node, target.index_map))
                for target in (*targets, *scratch_values)
                if target.reduction is None
            ]
            for target, accumulator in zip(reductions, self.accumulators, strict=True):
                value = self.values.in_lanes(inside, target.node, target.index_map)
                index = self._index(inside, target, accumulator) if accumulator.is_index else ""
                # Row lanes need no mask: inactive lanes repeat the first, and set its floating-point flags only.
                mask = self.values.mask(inside) if self.lane_loop in loops else ""
                accumulator.accumulate_element(inside, value, mask, index)
            for target, value in stored:
                self._store(inside, target, value)
            if not reductions and self.lane_loop == loops[-1]:
                self.prefetch_stores(inside, [target for target, _ in stored])

        if self.lane_loop not in loops or not reductions:
            lanes = self.values.lanes(block)
            self.accumulators = self._new_accumulators(block, reductions, lanes, is_long=phase.blocked)
            if len(loops) > 1 and phase.blocked:
                self.part_counter = PartCounter(self, block, self.accumulators)
            read = [*targets, *scratch_values]
            self.in_runs(block, loops, read, lambda inside: self._inner(inside, loops, step, read))
        elif len(loops) > 1:
            self.accumulators = self._new_accumulators(block, reductions, wide, is_long=True)
            self.part_counter = PartCounter(self, block, self.accumulators)
            self._inner(block, loops, step, targets)
            self.accumulators = self._combine_lanes(block, reductions, 1)
        else:
            is_alone = len(reductions) == len(targets) and not scratch_values
            self._reduce_row(block, loops[0], reductions, step, is_alone=is_alone)

    def _inner(self, block: Block, loops: list[int], step: Callable[[Block], None], targets: list[NestTarget]) -> None:
        """Emit nested loops of columns, the lane loop last, except for a gathered run."""
        loop, *others = loops
        begin, end = self._limits(loop)
        wide = self.step_lanes
        if others and loop == self.lane_loop:
            self.in_lanes(block, loop, (begin, end), lambda inside: self._inner(inside, others, step, targets))
        elif others:
            self.emit_loop(block, LoopSpec(loop, begin, end), lambda inside: self._inner(inside, others, step, targets))
        elif loop == self.schedule.gathered_run:
            self.emit_gathered_run(block, loop, targets, step)
        elif loop != self.lane_loop:
            self._in_parts(
                block, (begin, end), 1,
                lambda inside, first, last: self.emit_sequential(inside, loop, (first, last), targets, step),
            )  # fmt: skip
        elif self.accumulators:  # accumulators have the same lanes in all loops
            self._inner_lanes(block, loop, (begin, end), wide, step)
        else:
            self.in_lanes(block, loop, (begin, end), step)

    def _inner_lanes(
        self, block: Block, loop: int, limits: tuple[str, str], wide: int, step: Callable[[Block], None]
    ) -> None:
        """Emit the innermost of several reduced loops, in lanes: full iterations, and a masked one."""
        assert self.part_counter is not None, "begun with the outermost of these loops"
        last, left, mask = self._last_vector(self.function.block, *limits, wide)
        self.part_counter.make_room(block, "1" if self.schedule.is_short else "")
        self._in_parts(
            block, (limits[0], last), wide,
            lambda inside, first, stop: self.emit_loop(inside, LoopSpec(loop, first, stop, wide, wide), step),
        )  # fmt: skip
        rest = Block(block, loop, last, wide, mask)
        step(rest)
        self._emit_if(block, self.function.new(block, f"icmp ne i64 {left}, 0"), rest.lines)

    def _in_parts(
        self, block: Block, limits: tuple[str, str], lanes: int, body: Callable[[Block, str, str], None]
    ) -> None:
        """Emit a range by `lanes` lanes, blocked if any accumulator has parts."""
        begin, end = limits
        if not any(accumulator.has_parts for accumulator in self.accumulators):
            body(block, begin, end)
            return
        new, length = self.function.new, ADDS * lanes

        def one_part(inside: Block) -> None:
            ahead = new(inside, f"add nsw i64 {inside.index}, {length}")
            is_less = new(inside, f"icmp slt i64 {ahead}, {end}")
            last = new(inside, f"select i1 {is_less}, i64 {ahead}, i64 {end}")
            if self.part_counter is not None and lanes == 1:
                self.part_counter.make_room(inside, new(inside, f"sub nsw i64 {last}, {inside.index}"))
            else:
                combine = Block(inside, -1)
                if self.part_counter is not None:
                    self.part_counter.make_room(combine)
                else:
                    combine_parts(self, combine, self.accumulators, (begin, inside.index), length)
                self._emit_if(inside, new(inside, f"icmp sgt i64 {inside.index}, {begin}"), combine.lines)
            body(inside, inside.index, last)

        self.emit_loop(block, LoopSpec(None, begin, end, length), one_part)

    def _index(self, block: Block, target: NestTarget, accumulator: Accumulator) -> str:
        """The index of an element along the axis that is searched, in all lanes."""
        (loop,) = target.loops
        loop_block = next(inner for inner in block.path() if inner.loop == loop)
        if isinstance(accumulator, NarrowArgmax):
            return accumulator.step(block, loop_block.index)
        lanes, dtype = self.values.lanes(block), accumulator.index_dtype
        function = self.values.function
        number = Register(loop_block.index, "int64")
        if dtype != "int64":
            text = function.new(block, f"sub nsw i64 {loop_block.index}, {accumulator.first}")
            number = emit_cast(function, block, Register(text, "int64"), dtype)
        if lanes == 1:
            return number.text
        text = broadcast(function, block, number, lanes).text
        if loop != self.lane_loop:
            return text
        kind = llvm_type(dtype)
        numbers = "<" + ", ".join(f"{kind} {lane}" for lane in range(lanes)) + ">"
        return function.new(block, f"add nsw {llvm_type(dtype, lanes)} {text}, {numbers}")
