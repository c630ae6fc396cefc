"""The text of a loop: whole steps of several vectors, and then vectors of which some lanes may be off."""

from collections import Counter
from collections.abc import Callable
from itertools import product

from jitkernels.graph import extents
from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.loops import least_steps
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.turning import Turning
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.kept import kept_property
from jitkernels.native.language.types import NUMBERS

RUN = 8
"""Vectors that are reduced at once: a processor with 32 registers has room for them and for what they lost."""


class LoopWriter(Turning):
    """Writes loops, whatever is done in them. `accumulates`: whether something is reduced in those at hand."""

    accumulates = False

    def _limits(self, loop: int) -> tuple[str, str]:
        if loop == self.range_loop:
            return "%begin", "%end"
        return "0", self.function.extent(self.extents[loop])

    def _loop(self, block: Block, loop: int, limits: tuple[str, str], body: Callable[[Block], None]) -> None:
        """A loop; if its steps are lanes, by as many as go at once, and then by vectors with lanes that may be off."""
        begin, end = limits
        if loop != self.lane_loop:
            self.counted(block, loop, begin, end, 1, 1, body)
            return
        narrow, wide = self.lanes()
        self.in_lanes(block, loop, (begin, end), narrow, wide, body)

    def in_lanes(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        narrow: int,
        wide: int,
        body: Callable[[Block], None],
    ) -> None:
        """A loop whose steps are lanes: whole steps, and what is left by vectors of which some lanes may be off."""
        begin, end = limits
        reduces = bool(self.order) and any(target.reduction for target in self.targets)
        many, streamed = "", None
        arrays = [] if self.accumulates else self.streamed
        if arrays:
            many = self.are_many
            begin = (
                self._line_of_row(block, limits, narrow, body)
                if self.range_loop != loop
                else self._from_line(block, limits)
            )
            streamed = frozenset(array.word for array in arrays), many
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        whole = new(block, f"and i64 {count}, {-wide}")
        stop = new(block, f"add nsw i64 {begin}, {whole}")
        if self.directions.get(loop) == -1:
            self.counted(block, loop, stop, end, narrow, narrow, body, masked=narrow > 1)
            self.counted(block, loop, begin, stop, wide, wide, body)
            return
        if self._are_long_runs(loop, 2 * wide, narrow):
            twice = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-2 * wide}')}")
            self.counted(block, loop, begin, twice, 2 * wide, 2 * wide, body)
            begin = twice
        enters = self.is_filled(loop, wide) and not many
        self.counted(block, loop, begin, stop, wide, wide, body, enters=enters, streamed=streamed)
        if self.variant.halves and not reduces and not many and loop != self.range_loop:
            self._in_halves(block, loop, (begin, stop, end), narrow, body)
        elif reduces and not many:  # whose first step is the same in all rows
            self.single_vectors(block, loop, (begin, stop, end), narrow, wide, body)
        else:
            self.counted(block, loop, stop, end, narrow, narrow, body, masked=narrow > 1)

    def _are_long_runs(self, loop: int, lanes: int, narrow: int) -> bool:
        """Whether rows that are reduced together, each in its lane, are read in runs of so many lanes.

        Runs of more lines are what caches bring faster, and share fewer lines where arrays begin within one.
        """
        sums = [target for target in self.targets if target.reduction is not None]
        if not sums or loop not in self.order or self.variant.any_size:
            return False
        vectors = lanes // narrow * max(Counter(target.phase for target in sums).values())
        is_long = extents.value_of(self.extents[loop]) >= lanes
        return is_long and vectors <= RUN and not any(loop in target.loops for target in sums)

    def is_filled(self, loop: int, lanes: int) -> bool:
        """Whether so many lanes are always on: in a loop inside of rows, none of which is taken in parts."""
        inside = bool(self.order) and loop not in self.order
        return inside and least_steps(self.extents[loop]) >= lanes

    def single_vectors(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str, str],
        lanes: int,
        wide: int,
        body: Callable[[Block], None],
    ) -> None:
        """What whole steps left of a row, from the second limit on: vectors, and one with lanes that are off.

        That one is apart, as its lanes are the same in every row and in all that is done with a row.
        """
        begin, stop, end = limits
        new = self.function.new
        if lanes == 1:
            self.counted(block, loop, stop, end, 1, 1, body)
            return
        inside = bool(self.order) and loop not in self.order
        last, left, mask = self._last_vector(self.function.block if inside else block, begin, end, lanes)
        if wide > lanes:
            self.counted(block, loop, stop, last, lanes, lanes, body)
        vector = Block(block, loop, last, lanes, mask)
        body(vector)
        self._where(block, new(block, f"icmp ne i64 {left}, 0"), vector.lines)

    def _in_halves(
        self, block: Block, loop: int, limits: tuple[str, str, str], lanes: int, body: Callable[[Block], None]
    ) -> None:
        """What whole steps left of a row, from the second limit on: half a vector, then half of that, and so on."""
        begin, stop, end = limits
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        while lanes > 1:
            lanes //= 2
            here = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-lanes}')}")
            self.counted(block, loop, stop, here, lanes, lanes, body)
            stop = here

    def _last_vector(self, block: Block, begin: str, end: str, lanes: int) -> tuple[str, str, str]:
        """Where the vector begins that has lanes which are off, how many are on, and which."""
        key, new = ("last vector", begin, end, lanes), self.function.new
        if key not in block.known:
            count = new(block, f"sub nsw i64 {end}, {begin}")
            whole = new(block, f"and i64 {count}, {-lanes}")
            left = new(block, f"and i64 {count}, {lanes - 1}")
            last = new(block, f"add nsw i64 {begin}, {whole}")
            block.known[key] = last, left, self._mask(block, left, lanes)
        found: tuple[str, str, str] = block.known[key]
        return found

    def _where(self, block: Block, condition: str, lines: list[str], *, seldom: bool = False) -> None:
        """Lines that are run where a condition holds."""
        weights = ", !prof !4" if seldom else ""
        there, after = self.function.label(), self.function.label()
        block.lines += [f"  br i1 {condition}, label %{there}, label %{after}{weights}", f"{there}:", *lines]
        block.lines += [f"  br label %{after}", f"{after}:"]

    def counted(
        self,
        block: Block,
        loop: int | None,
        begin: str,
        end: str,
        step: int,
        lanes: int,
        body: Callable[[Block], None],
        *,
        masked: bool = False,
        enters: bool = False,
        streamed: tuple[frozenset[int], str] | None = None,
        is_range: bool = False,
    ) -> None:
        """A loop from begin to end, or backwards if that is its direction.

        `masked`: lanes behind the end are off; `enters`: it has a step at least; `streamed`: see `Block`; `is_range`:
        its steps are several of the outermost loop.
        """
        function = self.function
        counter = function.variable("i64")
        inside, after = function.label(), function.label()
        index = function.name()
        inner = Block(block, loop, index, lanes, streamed=streamed)
        if loop is None:
            inner.loop = -1
        if masked:
            left = function.new(inner, f"sub nsw i64 {end}, {index}")
            inner.mask = self._mask(inner, left, lanes)
        body(inner)
        some = "true" if enters else function.new(block, f"icmp slt i64 {begin}, {end}")
        first, sign, limit, move = begin, "slt", end, str(step)
        if self.turns and (is_range or loop == self.range_loop):
            sign, (first, limit, move) = "ne", self.either_way(block, begin, end, step)
        elif loop is not None and self.directions.get(loop) == -1:
            first, sign, limit, move = self.last_step(block, begin, end, step), "sge", begin, str(-step)
        following = function.new(inner, f"add nsw i64 {index}, {move}")
        more = function.name()
        # The condition stands at the end: LLVM keeps constants in registers if what needs them is done in any case.
        block.lines += [
            f"  store i64 {first}, ptr {counter}",
            f"  br i1 {some}, label %{inside}, label %{after}",
            f"{inside}:",
            f"  {index} = load i64, ptr {counter}",
            *inner.lines,
            f"  store i64 {following}, ptr {counter}",
            f"  {more} = icmp {sign} i64 {following}, {limit}",
            f"  br i1 {more}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]

    @kept_property
    def are_many(self) -> str:
        """Whether the steps of the function are so many that whole lines of what is `streamed` go past the caches.

        All the arrays must come to lie on lines of the caches at once, and none may be one that is read.
        """
        array, *others = self.streamed
        new, block = self.function.new, self.function.block
        count, least = (
            new(block, "sub nsw i64 %end, %begin"),
            max(self.variant.stream // NUMBERS[array.dtype].size, 1),
        )
        if self.range_loop != self.lane_loop:
            assert self.lane_loop is not None, "asked"
            count = new(block, f"mul nsw i64 {count}, {self.function.extent(self.extents[self.lane_loop])}")
        many = new(block, f"icmp sge i64 {count}, {max(least, LINE)}")
        for other in others:
            apart = new(
                block, f"sub i64 {self._first_of(block, other.word)}, {self._first_of(block, array.word)}"
            )
            beyond = new(block, f"and i64 {apart}, {LINE - 1}")
            many = new(block, f"and i1 {many}, {new(block, f'icmp eq i64 {beyond}, 0')}")
        for one, word in product(self.streamed, sorted(self.read_words)):
            firsts = self._first_of(block, one.word), self._first_of(block, word)
            many = new(block, f"and i1 {many}, {new(block, 'icmp ne i64 {}, {}'.format(*firsts))}")
        return many

    def _from_line(self, block: Block, limits: tuple[str, str]) -> str:
        """Where whole steps begin: those that go past the caches do from a line of these on.

        What is before it the function itself is called for, so that all code is there but once: it is what LLVM
        takes its time for.
        """
        array, begin = self.streamed[0], limits[0]
        new, reached = self.function.new, self.function.variable("i64")
        inside = Block(block, -1)
        before = new(inside, f"mul i64 {begin}, {NUMBERS[array.dtype].size}")
        address = new(inside, f"add i64 {self._first_of(inside, array.word)}, {before}")
        line = self._line_from(inside, array, address, limits)
        inside.lines.append(f"  call i64 @{self.name}(ptr %frame, i64 {begin}, i64 {line})")
        inside.lines.append(f"  store i64 {line}, ptr {reached}")
        block.lines.append(f"  store i64 {begin}, ptr {reached}")
        self._where(block, self.are_many, inside.lines, seldom=True)
        return new(block, f"load i64, ptr {reached}")

    def _line_of_row(
        self, block: Block, limits: tuple[str, str], lanes: int, body: Callable[[Block], None]
    ) -> str:
        """The same in a row, whose first elements are done here."""
        (target,) = [one for one in self.targets if one.reduction is None]
        array = self.streamed[0]
        assert self.lane_loop is not None, "asked"
        _, pointer, _ = self.values.address(block, array, target.place)
        line = self._line_from(
            block, array, self.function.new(block, f"ptrtoint ptr {pointer} to i64"), limits
        )
        line = self.function.new(block, f"select i1 {self.are_many}, i64 {line}, i64 {limits[0]}")
        self.counted(block, self.lane_loop, limits[0], line, lanes, lanes, body, masked=lanes > 1)
        return line

    def end_of_streams(self, block: Block) -> None:
        """Others may see from here on what was written."""
        if "are_many" in self.__dict__:
            self._where(block, self.are_many, ["  fence seq_cst"], seldom=True)

    def _first_of(self, block: Block, word: int) -> str:
        """The address of the array that a word of the frame has."""
        place = self.function.new(block, f"getelementptr i64, ptr %frame, i64 {word}")
        return self.function.new(block, f"load i64, ptr {place}")

    def _line_from(self, block: Block, array: Array, address: str, limits: tuple[str, str]) -> str:
        """The first step that writes to the beginning of a line of the caches, if the first of all writes there."""
        new, (begin, end) = self.function.new, limits
        back = new(block, f"sub i64 0, {address}")
        left = new(block, f"and i64 {back}, {LINE - 1}")
        steps = new(block, f"udiv i64 {left}, {NUMBERS[array.dtype].size}")
        line = new(block, f"add nsw i64 {begin}, {steps}")
        less = new(block, f"icmp slt i64 {line}, {end}")
        return new(block, f"select i1 {less}, i64 {line}, i64 {end}")

    def prefetch(self, block: Block, at: str, how: str) -> None:
        """Ask for a line: to read it or to write to it (0, 1), and how near to bring it (1 to 3)."""
        self.function.library.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        block.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, {how}, i32 1)")

    def _mask(self, block: Block, count: str, lanes: int, times: int = 1) -> str:
        """Which of the lanes are below a count; of so many vectors of such lanes, one behind another."""
        bits, all_lanes = min(8 * self.variant.vector_bytes // self.lanes()[0], 64), lanes * times
        kind = f"i{bits if lanes < 1 << bits else 2 * bits}"  # as wide as the widest elements
        few = self.function.new(block, f"icmp slt i64 {count}, {lanes}")
        most = self.function.new(block, f"select i1 {few}, i64 {count}, i64 {lanes}")
        short = most if kind == "i64" else self.function.new(block, f"trunc i64 {most} to {kind}")
        vector = f"<{all_lanes} x {kind}>"
        first = self.function.new(block, f"insertelement {vector} poison, {kind} {short}, i64 0")
        everywhere = self.function.new(
            block, f"shufflevector {vector} {first}, {vector} poison, <{all_lanes} x i32> zeroinitializer"
        )
        numbers = "<" + ", ".join(f"{kind} {lane % lanes}" for lane in range(all_lanes)) + ">"
        return self.function.new(block, f"icmp ugt {vector} {everywhere}, {numbers}")
