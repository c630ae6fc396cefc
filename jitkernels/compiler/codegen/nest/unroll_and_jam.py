"""Unroll and jam: compute two rows of a stencil together, so that their common elements are loaded once.

The innermost row loop is unrolled by two, and the copies are jammed into one loop of columns. A row ends with a full
vector too, which overlaps the one before it: it is computed before that one is stored, as the output may alias the
operands.

It applies in loops, whose arrays are in the caches since the last iteration, and to elementwise outputs, whose rows
may come in any order: reductions have their own schedules, and loops with a direction overwrite what other rows load.

Of two rows, several vectors of one are stored before those of the other: stores that alternate between lines wait for
each of them. On processors where stores of a single row wait too, lines of the next rows are prefetched.
"""

from collections.abc import Sequence
from itertools import product

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type, memory_type
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter, LoopSpec
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule.nest.nest_schedule import RowJam
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.shared_loads import LoadGroup, load_groups, two_rows
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.frozen_dataclass import frozen_dataclass

JAMMED_VECTORS = 2
"""Vectors of longer rows that are computed before they are stored."""


@frozen_dataclass
class PendingLines:
    """Cache lines to prefetch for stores: an access map of an array, and a distance in elements."""

    array: StridedArray
    access_map: IndexMap
    distance: str


class UnrollJam(LoopEmitter):
    """Emits the loops of rows that share loads. `jam`: how the current ones run."""

    jam: RowJam

    def jam_rows(self, block: Block, loops: Sequence[int], targets: Sequence[NestTarget], jam: RowJam) -> None:
        """Emit nested row loops: as many rows at once as `jam` has, then a single one."""
        loop, *inner = loops
        begin, end = self._limits(loop)
        if len(inner) > 1:
            self.emit_loop(block, LoopSpec(loop, begin, end), lambda inside: self.jam_rows(inside, inner, targets, jam))
            return
        self.jam = jam
        ahead = self._lines_to_prefetch(loops, targets) if jam.prefetches else []
        if jam.rows == 1:
            self.emit_loop(
                block, LoopSpec(loop, begin, end), lambda inside: self._emit_rows(inside, inner[0], targets, ahead)
            )
            return
        both, new = two_rows(targets, loop), self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        stop = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, -2')}")
        self.emit_loop(
            block, LoopSpec(loop, begin, stop, 2), lambda inside: self._emit_rows(inside, inner[0], both, ahead)
        )
        self.emit_loop(block, LoopSpec(loop, stop, end), lambda inside: self._last_row(inside, inner[0], targets))

    def _lines_to_prefetch(self, loops: Sequence[int], targets: Sequence[NestTarget]) -> list[PendingLines]:
        """The lines to prefetch: those that the next rows store to."""
        loop, inner = loops
        results, rows = [], self.jam.rows
        for array, access_map in [(target.output, target.index_map) for target in targets]:
            steps = array.coefficients(access_map)[1]
            step, size = steps.get(loop, 0), self.jam.lanes * NUMBERS[array.dtype].size
            if size < CACHE_LINE_BYTES // 2 or not same(steps.get(inner, 0), 1):
                continue  # the lines are not adjacent, or the same in all iterations
            for i in range(rows):
                distance = self.onward(loop, step * (rows + i), step * (i - rows))
                results.append(PendingLines(array, access_map, distance))
        return results

    def _emit_rows(self, block: Block, loop: int, targets: Sequence[NestTarget], ahead: Sequence[PendingLines]) -> None:
        """Emit rows by full vectors, the last of which may overlap the one before it."""
        lanes, new = self.jam.lanes, self.function.new
        begin, end = self._limits(loop)
        last = new(block, f"sub nsw i64 {end}, {lanes}")
        if self.jam.vectors:
            starts = [*(str(i * lanes) for i in range(self.jam.vectors - 1)), last]
            blocks = [Block(block, loop, start, lanes, lines=block.lines) for start in starts]
            self._together(blocks, targets, [])
            return
        stop = begin
        if self.jam.pairs:
            stop = self._emit_vector_groups(block, loop, (begin, last), targets, ahead)
        self._emit_pipelined(block, loop, (stop, last), targets, ahead)

    def _last_row(self, block: Block, loop: int, targets: Sequence[NestTarget]) -> None:
        """Emit a single last row, with little code."""
        if self.jam.vectors == 1:
            self._emit_rows(block, loop, targets, [])
            return
        begin, end = self._limits(loop)
        last = self.function.new(block, f"sub nsw i64 {end}, {self.jam.lanes}")
        self._emit_pipelined(block, loop, (begin, last), targets, [])

    def _emit_vector_groups(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        targets: Sequence[NestTarget],
        ahead: Sequence[PendingLines],
    ) -> str:
        """Emit several vectors at a time; return where the rest begins, at least two vectors."""
        lanes, new = self.jam.lanes, self.function.new
        begin, last = limits

        def iteration(inside: Block) -> None:
            others = [new(inside, f"add nsw i64 {inside.index}, {i * lanes}") for i in range(1, JAMMED_VECTORS)]
            blocks = [Block(block, loop, start, lanes, lines=inside.lines) for start in (inside.index, *others)]
            self._together(blocks, targets, ahead)

        step = lanes * JAMMED_VECTORS
        available = new(block, f"sub nsw i64 {new(block, f'sub nsw i64 {last}, {begin}')}, 1")
        whole = new(block, f"and i64 {available}, {-step}")
        stop = new(block, f"add nsw i64 {begin}, {whole}")
        self.emit_loop(block, LoopSpec(loop, begin, stop, step, lanes), iteration)
        return stop

    def _together(self, blocks: Sequence[Block], targets: Sequence[NestTarget], ahead: Sequence[PendingLines]) -> None:
        """Compute several vectors, and then store all of them."""
        self._emit_stores(blocks, targets, [self._emit_values(block, targets) for block in blocks], ahead)

    def _emit_pipelined(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        targets: Sequence[NestTarget],
        ahead: Sequence[PendingLines],
    ) -> None:
        """Emit one vector at a time, each stored after the next one is computed (software pipelining)."""
        lanes, new, variable = self.jam.lanes, self.function.new, self.function.variable
        begin, last = limits
        kinds = [llvm_type(target.node.dtype, lanes) for target in targets]
        slots = [("i64", variable("i64")), *((kind, variable(kind)) for kind in kinds)]
        inside, after = self.function.label(), self.function.label()

        def compute(inside_block: Block) -> None:
            computed = [inside_block.index, *self._emit_values(inside_block, targets)]
            inside_block.lines += [
                f"  store {kind} {value}, ptr {slot}" for (kind, slot), value in zip(slots, computed, strict=True)
            ]

        def reload(inside_block: Block) -> list[str]:
            return [new(inside_block, f"load {kind}, ptr {slot}") for kind, slot in slots]

        compute(Block(block, loop, begin, lanes, lines=block.lines))
        next_block = Block(block, loop, "", lanes)
        index, *values = reload(next_block)
        next_index = new(next_block, f"add nsw i64 {index}, {lanes}")
        is_whole = new(next_block, f"icmp slt i64 {next_index}, {last}")
        next_block.index = new(next_block, f"select i1 {is_whole}, i64 {next_index}, i64 {last}")
        compute(next_block)
        self._emit_stores([Block(block, loop, index, lanes, lines=next_block.lines)], targets, [values], ahead)
        block.lines += [
            f"  br label %{inside}",
            f"{inside}:",
            *next_block.lines,
            f"  br i1 {is_whole}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]
        index, *values = reload(block)
        self._emit_stores([Block(block, loop, index, lanes, lines=block.lines)], targets, [values], ahead)

    def _emit_values(self, block: Block, targets: Sequence[NestTarget]) -> list[str]:
        """Load everything before any store: an output may alias what another output reads here."""
        for group in load_groups(self.values, targets, self.vector_loop, self.jam.lanes):
            if len(group.reads) > 1:
                self.load_group(block, group)
        return [self.values.in_lanes(block, target.node, target.index_map).text for target in targets]

    def load_group(self, block: Block, group: LoadGroup) -> None:
        """Load a vector, and shift it for the loads that begin at some of its lanes."""
        lanes, new, dtype = self.values.lanes(block), self.function.new, group.array.dtype
        begin, size = min(group.reads), NUMBERS[dtype].size
        span = max(group.reads) - begin
        kind, tail_type = memory_type(dtype, lanes), memory_type(dtype, span)
        home, pointer, _ = self.values.address(block, group.array, group.reads[begin][0][1])
        first = self.values.load_at(home, block, group.array, pointer, 1).text
        tail_address = new(home, f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {lanes}")
        tail = new(home, f"load {tail_type}, ptr {tail_address}, align {size}")
        if span == 1:
            tail = new(home, f"insertelement {kind} poison, {tail_type} {tail}, i64 0")
        else:
            padded = (lane if lane < span else "poison" for lane in range(lanes))
            tail = self.function.shuffle(home, memory_type(dtype), span, tail, "poison", padded)
        for distance, pairs in group.reads.items():
            text = first
            if distance > begin:
                numbers = (lane + distance - begin for lane in range(lanes))
                text = self.function.shuffle(home, memory_type(dtype), lanes, first, tail, numbers)
            for pair in pairs:
                home.known[self.values.key(*pair)] = home, Register(text, dtype, lanes)

    def _emit_stores(
        self,
        blocks: Sequence[Block],
        targets: Sequence[NestTarget],
        values: Sequence[Sequence[str]],
        ahead: Sequence[PendingLines],
    ) -> None:
        """Store vectors, one target after another: into lines that are in the cache."""
        for number, target in enumerate(targets):
            for block, vector_values in zip(blocks, values, strict=True):
                value = Register(vector_values[number], target.node.dtype, block.lanes)
                self.values.store(block, target.output, target.index_map, value)
        for block, line in product(blocks, ahead):
            offsets = [(self.function.block, line.distance)]
            _, pointer, _ = self.values.address(block, line.array, line.access_map, offsets)
            self.prefetch(block, pointer, "i32 1, i32 3")
