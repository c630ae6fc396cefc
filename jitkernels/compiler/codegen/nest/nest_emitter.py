"""One nest of a schedule as a function ``i64 @name(ptr frame, i64 begin, i64 end)``: a part of its outermost loop.

Rows are the outer loops. In every row come phases: reductions whose inputs are known, each with what else the loops of
its phase compute; the columns of a root are stored in the phase behind its last reduction. Steps of one of the loops
are lanes of vectors: of the one along which most arrays lie without gaps. If that is a loop of columns, a reduction
ends with one number for the row. If it is a loop of rows, every lane is a row of its own.
"""

from collections.abc import Callable
from dataclasses import replace

from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type, memory_type
from jitkernels.graph.emit.coming_lines import ComingLines
from jitkernels.graph.emit.conversions import converted, spread
from jitkernels.graph.emit.loops import most_steps
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.neighbour_rows import NeighbourRows
from jitkernels.graph.emit.reduced_rows import CHUNK, ReducedRows
from jitkernels.graph.emit.reductions import Accumulator
from jitkernels.graph.emit.row_runs import Runs
from jitkernels.graph.emit.stashes import stashes
from jitkernels.graph.emit.step_counts import StepCounts
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Number, same
from jitkernels.native.language.types import NUMBERS

PART = CHUNK // 16
"""The same where its steps are added up one by one, each lane for itself."""
ROWS = 128
"""Short rows that are one."""
AHEAD = 1 << 18
"""Bytes that are fetched before they are asked for."""
SOON = 1 << 12
"""The same of what is read but once, over all arrays: into the second cache, of as much as is on its way at a time."""


class Emitter(ReducedRows, NeighbourRows, ComingLines, Runs):
    """Writes one nest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.accumulators: list[Accumulator] = []
        self.stashes = stashes(self.nest, self.targets, self.values)

    def text(self) -> str:
        """The function."""
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
        """All phases of one row, or of as many as there are lanes."""
        # What the text of other steps has found is not there in these.
        self.values.reduced.clear()
        self.values.stashed.clear()
        self._begin_streams(block)
        for phase in range(1, max((target.phase for target in self.targets), default=0) + 1):
            inner: dict[tuple[int, ...], list[Target]] = {}
            for target in self.targets:
                if target.phase == phase and target.loops:
                    inner.setdefault(target.loops, []).append(target)
            for loops, targets in inner.items():
                self._phase(block, self._inner_order(loops), targets)
            given = [
                one for one in self.targets if one.phase == phase and not one.loops and one.array is not None
            ]
            for target in given:
                value = self.values.value(block, target.node, target.place)
                self._store(block, target, value)
            self.ask_for_lines(block, given)

    def _begin_streams(self, block: Block) -> None:
        """What is kept for a root that goes past the caches is kept in one row for all: that which is written last.

        The line in which a row ends is one of the next row too. It is asked for early: all stores would wait for it.
        """
        if not self.streamed or block.loop is None:
            return
        new, (array,) = self.function.new, self.streamed
        (target,) = [one for one in self.targets if one.reduction is None]
        assert self.lane_loop is not None, "asked"
        _, pointer, _ = self.values.address(block, array, target.place)
        count = self.function.extent(self.extents[self.lane_loop])
        end = new(block, f"getelementptr {memory_type(array.dtype)}, ptr {pointer}, i64 {count}")
        self.prefetch(block, end, "i32 1, i32 3")
        if not self.stashes:
            return
        last = new(self.function.block, "sub nsw i64 %end, 1")
        row = new(block, f"select i1 {self.are_many}, i64 {last}, i64 {block.index}")
        for one in self.stashes:
            assert one.array is not None, "a root's"
            one.array = replace(one.array, instead=(block.loop, row))

    def _fetch(self, block: Block, phase: int) -> None:
        """What will be read, from memory into the second cache.

        Where a row is gone through again, that is the next row, while the second phase of this one finds what it needs
        in the caches; of a row that is but reduced every second line, as processors bring two, and phases are short.
        Else it is what comes soon: one core by itself does not ask for as much as memory gives.
        """
        if self.lane_loop is None or self.values.mask(block):
            return
        phases = max((target.phase for target in self.targets if target.loops), default=0)
        reduces = any(target.reduction for target in self.targets)
        if not (self.variant.fetches or self.streamed) or not reduces or phase != min(phases, 2):
            return
        new, reads = self.function.new, self._read_first()
        every = 2 if phases > 1 and not self.streamed else 1
        for array, place, step in reads.values():
            size = NUMBERS[array.dtype].size
            _, pointer, _ = self.values.address(block, array, place)
            soon = str(SOON // len(reads) // LINE * LINE)
            distance = self._ahead(step, size) if phases > 1 else soon
            ahead = new(block, f"getelementptr i8, ptr {pointer}, i64 {distance}")
            for line in range(0, self.values.lanes(block) * size // LINE, every):
                at = new(block, f"getelementptr i8, ptr {ahead}, i64 {line * LINE}")
                self.prefetch(block, at, "i32 0, i32 2")

    def _read_first(self) -> dict[int, tuple[Array, IndexMap, Number]]:
        """What the first phase of a row reads element by element, and how far it is to the next row of it."""
        found = {}
        assert self.lane_loop is not None, "asked"
        for target in self.targets:
            for node, place in self.values.needed(target.node, target.place) if target.phase == 1 else ():
                array = self.values.arrays.get(id(node))
                if array is not None:
                    _, steps = self.values.coefficients(array.strides, place)
                    step = steps.get(self.order[0], 0) if self.order else 0
                    is_again = bool(self.order) and same(step, 0)  # what all rows read
                    if same(steps.get(self.lane_loop, 0), 1) and not is_again:
                        found[array.word] = array, place, step
        return found

    def _ahead(self, step: Number, size: int) -> str:
        """The bytes of a step of rows; of long ones, what the second cache takes beside what it has."""
        function, key = self.function, ("ahead", extents.key_of(step), size)
        block = function.block
        if key not in block.known:
            own = function.new(block, f"mul nsw i64 {function.extent(step)}, {size}")
            less = function.new(block, f"icmp slt i64 {own}, {AHEAD}")
            block.known[key] = function.new(block, f"select i1 {less}, i64 {own}, i64 {AHEAD}")
        text: str = block.known[key]
        return text

    def _phase(self, block: Block, loops: list[int], targets: list[Target]) -> None:
        """One nest of inner loops: reductions take their elements, roots are stored."""
        self.accumulate(block, loops, targets)
        reductions = [target for target in targets if target.reduction is not None]
        for target, accumulator in zip(reductions, self.accumulators, strict=True):
            assert target.reduction is not None, "chosen"
            self.values.reduced[self.values.key(*target.reduction)] = block, accumulator.result(block)
        for one in self._stashed(loops, targets):
            assert one.array is not None, "a root's"
            self.values.stashed[self.values.key(one.node, one.place)] = one.array

    def _store(self, block: Block, target: Target, value: Register) -> None:
        assert target.array is not None, "a root's"
        where = target.where if target.node.operation == "placed" else target.place
        self.values.stored(block, target.node, target.place, target.array, where, value)

    def _stashed(self, loops: list[int], targets: list[Target]) -> list[Target]:
        """What a phase keeps in the array of a root."""
        return [one for one in self.stashes if one.phase == targets[0].phase and set(one.loops) == set(loops)]

    def accumulate(self, block: Block, loops: list[int], targets: list[Target]) -> None:
        """The loops of a phase: its accumulators have taken all then, and its roots are stored."""
        self.values.runs += 1
        narrow, wide = self.lanes()
        reductions = [target for target in targets if target.reduction is not None]
        self.accumulates = bool(reductions)
        stashes = self._stashed(loops, targets)
        if not reductions and not stashes and self.are_neighbours(loops, targets):
            self.in_neighbours(block, loops, targets)
            return

        def step(inside: Block) -> None:
            if self.lane_loop in loops:
                self._fetch(inside, targets[0].phase)
            elif len(loops) == 1 and self.values.lanes(inside) > wide:
                self.fetch_runs(inside, loops[0], targets)
            # All is read before anything is written: what is written may be what another root reads here.
            stored = [
                (target, self.values.value(inside, target.node, target.place))
                for target in (*targets, *stashes)
                if target.reduction is None
            ]
            for target, accumulator in zip(reductions, self.accumulators, strict=True):
                value = self.values.in_lanes(inside, target.node, target.place)
                index = self._index(inside, target, accumulator) if accumulator.is_index else ""
                # Lanes of columns are apart: those that are off follow the first, and fail where that one does.
                mask = self.values.mask(inside) if self.lane_loop in loops else ""
                accumulator.take(inside, value, mask, index)
            for target, value in stored:
                assert target.array is not None, "a root"
                self._store(inside, target, value)
            if not reductions and self.lane_loop == loops[-1]:
                self.ask_for_lines(inside, [target for target, _ in stored])

        if self.lane_loop not in loops or not reductions:
            is_long = self._is_long(loops, reductions)
            self.accumulators = self._begun(block, reductions, self.values.lanes(block), is_long=is_long)
            read = [*targets, *stashes]
            self.in_runs(block, loops, read, lambda inside: self._inner(inside, loops, step, read))
        elif len(loops) > 1:
            self.accumulators = self._begun(block, reductions, wide, is_long=True)
            self._inner(block, loops, step, targets)
            self.accumulators = self._given(block, reductions, 1)
        else:
            is_alone = len(reductions) == len(targets) and not stashes
            self._in_two_widths(block, loops[0], reductions, narrow, wide, step, is_alone=is_alone)

    def _is_long(self, loops: list[int], reductions: list[Target]) -> bool:
        """Whether so much may be reduced step by step that it is done in parts."""
        most = most_steps(self.extents[loops[0]]) if len(loops) == 1 else None
        finds = any(self._accumulator(target, 1).is_index for target in reductions)
        return finds or most is None or most > PART

    def _inner(
        self, block: Block, loops: list[int], step: Callable[[Block], None], targets: list[Target]
    ) -> None:
        """Loops of columns, one in another, that of lanes last."""
        loop, *others = loops
        begin, end = self._limits(loop)
        narrow, wide = self.lanes()
        if others:
            self.counted(
                block, loop, begin, end, 1, 1, lambda inside: self._inner(inside, others, step, targets)
            )
        elif loop != self.lane_loop:
            self._in_parts(
                block, self.accumulators, (begin, end), PART,
                lambda inside, first, last: self.one_by_one(inside, loop, (first, last), targets, step),
            )  # fmt: skip
        elif self.accumulators:  # which are as wide through all loops
            condition = "true"
            if self.few:  # many rows are one part
                number = self.function.new(block, f"and i64 {block.index}, {ROWS - 1}")
                condition = self.function.new(block, f"icmp eq i64 {number}, 0")
            self._next_part(block, self.accumulators, condition)
            self.in_lanes(block, loop, (begin, end), wide, wide, step)
        else:
            self.in_lanes(block, loop, (begin, end), narrow, wide, step)

    def _in_parts(
        self,
        block: Block,
        accumulators: list[Accumulator],
        limits: tuple[str, str],
        length: int,
        body: Callable[[Block, str, str], None],
    ) -> None:
        """What goes from one place to another, in parts of a length if any accumulator sums in parts."""
        begin, end = limits
        if not any(one.has_parts for one in accumulators):
            body(block, begin, end)
            return
        new = self.function.new

        def one_part(inside: Block) -> None:
            self._next_part(inside, accumulators, new(inside, f"icmp sgt i64 {inside.index}, {begin}"))
            ahead = new(inside, f"add nsw i64 {inside.index}, {length}")
            less = new(inside, f"icmp slt i64 {ahead}, {end}")
            body(inside, inside.index, new(inside, f"select i1 {less}, i64 {ahead}, i64 {end}"))

        self.counted(block, None, begin, end, length, 1, one_part)

    def _next_part(self, block: Block, accumulators: list[Accumulator], condition: str) -> None:
        """Begin another part of all sums, where there is one before it."""
        inside = Block(block, -1)
        for one in accumulators:
            one.next_part(inside)
        self._where(block, condition, inside.lines)

    def _index(self, block: Block, target: Target, accumulator: Accumulator) -> str:
        """The number of an element along the axis that is searched, in all lanes."""
        (loop,) = target.loops
        found = next(one for one in block.path() if one.loop == loop)
        if isinstance(accumulator, StepCounts):
            return accumulator.step(block, found.index)
        lanes, dtype = self.values.lanes(block), accumulator.index_dtype
        everywhere = self.values.function
        number = Register(found.index, "int64")
        if dtype != "int64":
            text = everywhere.new(block, f"sub nsw i64 {found.index}, {accumulator.first}")
            number = converted(everywhere, block, Register(text, "int64"), dtype)
        if lanes == 1:
            return number.text
        text = spread(everywhere, block, number, lanes).text
        if loop != self.lane_loop:
            return text
        kind = llvm_type(dtype)
        numbers = "<" + ", ".join(f"{kind} {lane}" for lane in range(lanes)) + ">"
        return everywhere.new(block, f"add nsw {llvm_type(dtype, lanes)} {text}, {numbers}")
