"""Emission of loops: unrolled vectors, full vectors, and a masked remainder; streaming stores."""

from collections import Counter
from collections.abc import Callable
from itertools import product

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.loop_order import least_steps
from jitkernels.compiler.codegen.nest.serpentine_order import SerpentineOrder
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.frozen_dataclass import frozen_dataclass

MAX_ACCUMULATOR_VECTORS = 8
"""The most accumulator vectors: 32 registers have room for them and for their compensations."""


@frozen_dataclass
class LoopSpec:
    """A loop over a range, and the lanes of an iteration. `loop`: its number, None for none of the nest's loops.

    `masked`: mask lanes behind the end; `enters`: there is at least one iteration; `streamed`: see `Block`; `is_range`:
    its iterations are several of the outermost loop.
    """

    loop: int | None
    begin: str
    end: str
    step: int = 1
    lanes: int = 1
    masked: bool = False
    enters: bool = False
    streamed: tuple[frozenset[int], str] | None = None
    is_range: bool = False


class LoopEmitter(SerpentineOrder):
    """Emits loops around any body. `accumulates`: whether the current loops reduce."""

    accumulates = False

    def _limits(self, loop: int) -> tuple[str, str]:
        if loop == self.range_loop:
            return "%begin", "%end"
        return "0", self.function.extent(self.extents[loop])

    def _loop(self, block: Block, loop: int, limits: tuple[str, str], body: Callable[[Block], None]) -> None:
        """Emit a loop; the lane loop with unrolled vectors and a masked remainder."""
        begin, end = limits
        if loop != self.lane_loop:
            self.emit_loop(block, LoopSpec(loop, begin, end), body)
            return
        self.in_lanes(block, loop, limits, body)

    def in_lanes(self, block: Block, loop: int, limits: tuple[str, str], body: Callable[[Block], None]) -> None:
        """Emit the lane loop: by unrolled vectors, and the remainder by single ones, masked."""
        begin, end = limits
        narrow, wide = self.lanes()
        reduces = bool(self.order) and any(target.reduction for target in self.targets)
        is_large, streamed = "", None
        arrays = [] if self.accumulates else self.streamed
        if arrays:
            is_large = self.are_many
            begin = (
                self._line_of_row(block, limits, narrow, body)
                if self.range_loop != loop
                else self._from_line(block, limits)
            )
            streamed = frozenset(array.word for array in arrays), is_large
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        main_count = new(block, f"and i64 {count}, {-wide}")
        main_end = new(block, f"add nsw i64 {begin}, {main_count}")
        if self.directions.get(loop) == -1:
            self.emit_loop(block, LoopSpec(loop, main_end, end, narrow, narrow, masked=narrow > 1), body)
            self.emit_loop(block, LoopSpec(loop, begin, main_end, wide, wide), body)
            return
        if self._are_long_runs(loop, 2 * wide, narrow):
            unrolled_end = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-2 * wide}')}")
            self.emit_loop(block, LoopSpec(loop, begin, unrolled_end, 2 * wide, 2 * wide), body)
            begin = unrolled_end
        enters = self.is_filled(loop, wide) and not is_large
        self.emit_loop(block, LoopSpec(loop, begin, main_end, wide, wide, enters=enters, streamed=streamed), body)
        if self.variant.halves_remainder and not reduces and not is_large and loop != self.range_loop:
            self._in_halves(block, loop, (begin, main_end, end), body)
        elif reduces and not is_large:  # whose first iteration is the same in all rows
            self.single_vectors(block, loop, (begin, main_end, end), body)
        else:
            self.emit_loop(block, LoopSpec(loop, main_end, end, narrow, narrow, masked=narrow > 1), body)

    def _are_long_runs(self, loop: int, lanes: int, narrow: int) -> bool:
        """Return whether reduced rows, one per lane, are loaded in runs of so many lanes.

        Caches deliver longer runs faster, and fewer lines straddle where arrays begin within a line.
        """
        sums = [target for target in self.targets if target.reduction is not None]
        if not sums or loop not in self.order or self.variant.any_size:
            return False
        vectors = lanes // narrow * max(Counter(target.phase for target in sums).values())
        is_long = symbolic_dims.value_of(self.extents[loop]) >= lanes
        return is_long and vectors <= MAX_ACCUMULATOR_VECTORS and not any(loop in target.loops for target in sums)

    def is_filled(self, loop: int, lanes: int) -> bool:
        """Return whether a vector of so many lanes is never masked: in a loop inside of rows, which runs whole."""
        inside = bool(self.order) and loop not in self.order
        return inside and least_steps(self.extents[loop]) >= lanes

    def single_vectors(
        self, block: Block, loop: int, limits: tuple[str, str, str], body: Callable[[Block], None]
    ) -> None:
        """Emit the remainder of a row behind its unrolled vectors: full vectors, and one masked vector.

        The masked one is apart, as its mask is the same in every row and phase.
        """
        begin, stop, end = limits
        new, (lanes, wide) = self.function.new, self.lanes()
        if lanes == 1:
            self.emit_loop(block, LoopSpec(loop, stop, end), body)
            return
        inside = bool(self.order) and loop not in self.order
        last, left, mask = self._last_vector(self.function.block if inside else block, begin, end, lanes)
        if wide > lanes:
            self.emit_loop(block, LoopSpec(loop, stop, last, lanes, lanes), body)
        vector = Block(block, loop, last, lanes, mask)
        body(vector)
        self._emit_if(block, new(block, f"icmp ne i64 {left}, 0"), vector.lines)

    def _in_halves(self, block: Block, loop: int, limits: tuple[str, str, str], body: Callable[[Block], None]) -> None:
        """Emit the remainder of a row without masks: half a vector, a quarter, and so on."""
        begin, stop, end = limits
        new, (lanes, _) = self.function.new, self.lanes()
        count = new(block, f"sub nsw i64 {end}, {begin}")
        while lanes > 1:
            lanes //= 2
            here = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-lanes}')}")
            self.emit_loop(block, LoopSpec(loop, stop, here, lanes, lanes), body)
            stop = here

    def _last_vector(self, block: Block, begin: str, end: str, lanes: int) -> tuple[str, str, str]:
        """Return where the masked vector begins, how many lanes are active, and the mask."""
        key, new = ("last vector", begin, end, lanes), self.function.new
        if key not in block.known:
            count = new(block, f"sub nsw i64 {end}, {begin}")
            whole = new(block, f"and i64 {count}, {-lanes}")
            left = new(block, f"and i64 {count}, {lanes - 1}")
            last = new(block, f"add nsw i64 {begin}, {whole}")
            block.known[key] = last, left, self._mask(block, left, lanes)
        result: tuple[str, str, str] = block.known[key]
        return result

    def _emit_if(self, block: Block, condition: str, lines: list[str], *, unlikely: bool = False) -> None:
        """Emit lines under a condition."""
        weights = ", !prof !4" if unlikely else ""
        then_label, after = self.function.label(), self.function.label()
        block.lines += [f"  br i1 {condition}, label %{then_label}, label %{after}{weights}", f"{then_label}:", *lines]
        block.lines += [f"  br label %{after}", f"{after}:"]

    def emit_loop(self, block: Block, spec: LoopSpec, body: Callable[[Block], None]) -> None:
        """Emit a loop from begin to end, or backwards if that is its direction."""
        function, loop, begin, end = self.function, spec.loop, spec.begin, spec.end
        counter = function.variable("i64")
        inside, after = function.label(), function.label()
        index = function.name()
        inner = Block(block, -1 if loop is None else loop, index, spec.lanes, streamed=spec.streamed)
        if spec.masked:
            left = function.new(inner, f"sub nsw i64 {end}, {index}")
            inner.mask = self._mask(inner, left, spec.lanes)
        body(inner)
        is_entered = "true" if spec.enters else function.new(block, f"icmp slt i64 {begin}, {end}")
        first, sign, limit, increment = begin, "slt", end, str(spec.step)
        if self.serpentine_words and (spec.is_range or loop == self.range_loop):
            sign, (first, limit, increment) = "ne", self.either_way(block, begin, end, spec.step)
        elif loop is not None and self.directions.get(loop) == -1:
            first, sign, limit = self.last_step(block, begin, end, spec.step), "sge", begin
            increment = str(-spec.step)
        next_index = function.new(inner, f"add nsw i64 {index}, {increment}")
        more = function.name()
        # A rotated loop: LLVM keeps constants in registers if their use dominates the latch.
        block.lines += [
            f"  store i64 {first}, ptr {counter}",
            f"  br i1 {is_entered}, label %{inside}, label %{after}",
            f"{inside}:",
            f"  {index} = load i64, ptr {counter}",
            *inner.lines,
            f"  store i64 {next_index}, ptr {counter}",
            f"  {more} = icmp {sign} i64 {next_index}, {limit}",
            f"  br i1 {more}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]

    @unlocked_cached_property
    def are_many(self) -> str:
        """Whether the range is so large that full cache lines of `streamed` are stored by streaming stores.

        All the arrays must reach a cache line boundary at once, and none may be one that is read.
        """
        array, *others = self.streamed
        new, block = self.function.new, self.function.block
        count, least = (
            new(block, "sub nsw i64 %end, %begin"),
            max(self.variant.stream // NUMBERS[array.dtype].size, 1),
        )
        if self.range_loop != self.lane_loop:
            count = new(block, f"mul nsw i64 {count}, {self.function.extent(self.extents[self.vector_loop])}")
        is_large = new(block, f"icmp sge i64 {count}, {max(least, CACHE_LINE_BYTES)}")
        for other in others:
            distance = new(block, f"sub i64 {self._first_of(block, other.word)}, {self._first_of(block, array.word)}")
            misalignment = new(block, f"and i64 {distance}, {CACHE_LINE_BYTES - 1}")
            is_large = new(block, f"and i1 {is_large}, {new(block, f'icmp eq i64 {misalignment}, 0')}")
        for streamed_array, word in product(self.streamed, sorted(self.read_words)):
            firsts = self._first_of(block, streamed_array.word), self._first_of(block, word)
            is_large = new(block, f"and i1 {is_large}, {new(block, 'icmp ne i64 {}, {}'.format(*firsts))}")
        return is_large

    def _from_line(self, block: Block, limits: tuple[str, str]) -> str:
        """Return where full vectors begin: streaming stores begin at a cache line boundary.

        The function calls itself for the elements before, so that all code exists once: compile time is LLVM's.
        """
        array, begin = self.streamed[0], limits[0]
        new, reached = self.function.new, self.function.variable("i64")
        inside = Block(block, -1)
        byte_offset = new(inside, f"mul i64 {begin}, {NUMBERS[array.dtype].size}")
        address = new(inside, f"add i64 {self._first_of(inside, array.word)}, {byte_offset}")
        line = self._line_from(inside, array, address, limits)
        inside.lines.append(f"  call i64 @{self.name}(ptr %frame, i64 {begin}, i64 {line})")
        inside.lines.append(f"  store i64 {line}, ptr {reached}")
        block.lines.append(f"  store i64 {begin}, ptr {reached}")
        self._emit_if(block, self.are_many, inside.lines, unlikely=True)
        return new(block, f"load i64, ptr {reached}")

    def _line_of_row(self, block: Block, limits: tuple[str, str], lanes: int, body: Callable[[Block], None]) -> str:
        """Return the same for a row, whose elements before the boundary are computed here."""
        (target,) = [target for target in self.targets if target.reduction is None]
        array = self.streamed[0]
        _, pointer, _ = self.values.address(block, array, target.index_map)
        line = self._line_from(block, array, self.function.new(block, f"ptrtoint ptr {pointer} to i64"), limits)
        line = self.function.new(block, f"select i1 {self.are_many}, i64 {line}, i64 {limits[0]}")
        self.emit_loop(block, LoopSpec(self.lane_loop, limits[0], line, lanes, lanes, masked=lanes > 1), body)
        return line

    def end_of_streams(self, block: Block) -> None:
        """Fence: make streaming stores visible to other threads."""
        if "are_many" in self.__dict__:
            self._emit_if(block, self.are_many, ["  fence seq_cst"], unlikely=True)

    def _first_of(self, block: Block, word: int) -> str:
        """The address of the array at a frame word."""
        return self.function.load_slot(block, word)

    def _line_from(self, block: Block, array: StridedArray, address: str, limits: tuple[str, str]) -> str:
        """The first iteration that stores to the beginning of a cache line, given the address of the first store."""
        new, (begin, end) = self.function.new, limits
        negative = new(block, f"sub i64 0, {address}")
        padding = new(block, f"and i64 {negative}, {CACHE_LINE_BYTES - 1}")
        steps = new(block, f"udiv i64 {padding}, {NUMBERS[array.dtype].size}")
        line = new(block, f"add nsw i64 {begin}, {steps}")
        is_less = new(block, f"icmp slt i64 {line}, {end}")
        return new(block, f"select i1 {is_less}, i64 {line}, i64 {end}")

    def prefetch(self, block: Block, at: str, how: str) -> None:
        """Prefetch a cache line: `how` is whether to read or write it (0, 1), and into which cache (1 to 3)."""
        self.function.library.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        block.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, {how}, i32 1)")

    def _mask(self, block: Block, count: str, lanes: int, times: int = 1) -> str:
        """The mask of the lanes below a count, repeated `times` times."""
        bits, all_lanes = min(8 * self.variant.vector_bytes // self.lanes()[0], 64), lanes * times
        kind = f"i{bits if lanes < 1 << bits else 2 * bits}"  # as wide as the widest elements
        is_less = self.function.new(block, f"icmp slt i64 {count}, {lanes}")
        clamped = self.function.new(block, f"select i1 {is_less}, i64 {count}, i64 {lanes}")
        narrow = clamped if kind == "i64" else self.function.new(block, f"trunc i64 {clamped} to {kind}")
        vector = f"<{all_lanes} x {kind}>"
        splat_count = self.function.splat(block, kind, all_lanes, narrow)
        numbers = "<" + ", ".join(f"{kind} {lane % lanes}" for lane in range(all_lanes)) + ">"
        return self.function.new(block, f"icmp ugt {vector} {splat_count}, {numbers}")
