"""Emission of loops: peeled iterations, unrolled vectors, full vectors, and a masked remainder."""

from collections.abc import Callable

from jitkernels.compiler.codegen.core.ir_builder import Block, Prefix
from jitkernels.compiler.codegen.nest.aligned_stores import AlignedStores
from jitkernels.compiler.schedule.nest.halved_lanes import halved_lanes
from jitkernels.compiler.schedule.nest.nest_schedule import Remainder
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.core.frozen_dataclass import frozen_dataclass


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


class LoopEmitter(AlignedStores):
    """Emits loops around any body."""

    def _limits(self, loop: int) -> tuple[str, str]:
        if loop == self.parallel_loop:
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
        store = self.aligned_store
        if store is None:
            self._unrolled(block, loop, limits, body)
        else:
            peeled = self._peeled_if_long(block, store, limits)
            self._emit_parts(block, limits, peeled, lambda part, own: self._unrolled(part, loop, own, body))

    def _peeled_if_long(self, block: Block, store: NestTarget, limits: tuple[str, str]) -> str:
        """Return `peeled_end`, or the end of loops that are too short: there may be one for each row."""
        new, (begin, end), inside = self.function.new, limits, Block(block)
        result, count = self.function.variable("i64"), new(block, f"sub nsw i64 {end}, {begin}")
        block.lines.append(f"  store i64 {end}, ptr {result}")
        inside.lines.append(f"  store i64 {self.peeled_end(inside, store, limits)}, ptr {result}")
        self._emit_if(block, new(block, f"icmp sge i64 {count}, {self.least_peeled()}"), inside.lines)
        return new(block, f"load i64, ptr {result}")

    def _emit_parts(
        self, block: Block, limits: tuple[str, str], peeled: str, body: Callable[[Block, tuple[str, str]], None]
    ) -> None:
        """Emit the peeled iterations and the others in a loop of two iterations: all code exists once."""
        function, (begin, end) = self.function, limits
        part_begin, part_end = function.variable("i64"), function.variable("i64")
        inside, after = function.label(), function.label()
        part = Block(block, -1)
        first, last = (function.new(part, f"load i64, ptr {slot}") for slot in (part_begin, part_end))
        body(part, (first, last))
        more = function.new(part, f"icmp slt i64 {last}, {end}")
        block.lines += [
            f"  store i64 {begin}, ptr {part_begin}",
            f"  store i64 {peeled}, ptr {part_end}",
            f"  br label %{inside}",
            f"{inside}:",
            *part.lines,
            f"  store i64 {last}, ptr {part_begin}",
            f"  store i64 {end}, ptr {part_end}",
            f"  br i1 {more}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]

    def _unrolled(self, block: Block, loop: int, limits: tuple[str, str], body: Callable[[Block], None]) -> None:
        """Emit unrolled vectors of a range, and its remainder."""
        begin, end = limits
        schedule, narrow, wide = self.schedule, self.lanes, self.step_lanes
        arrays = [] if self.accumulates else self.streamed
        is_large = self.are_many if arrays else ""
        streamed = (frozenset(array.word for array in arrays), is_large) if arrays else None
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        main_count = new(block, f"and i64 {count}, {-wide}")
        main_end = new(block, f"add nsw i64 {begin}, {main_count}")
        if self.directions.get(loop) == -1:
            self.emit_loop(block, LoopSpec(loop, main_end, end, narrow, narrow, masked=narrow > 1), body)
            self.emit_loop(block, LoopSpec(loop, begin, main_end, wide, wide), body)
            return
        if schedule.doubles_steps:
            unrolled_end = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-2 * wide}')}")
            self.emit_loop(block, LoopSpec(loop, begin, unrolled_end, 2 * wide, 2 * wide, streamed=streamed), body)
            begin = unrolled_end
        enters = schedule.fills_step and not is_large and self.aligned_store is None
        self.emit_loop(block, LoopSpec(loop, begin, main_end, wide, wide, enters=enters, streamed=streamed), body)
        if schedule.remainder is Remainder.HALVED:
            self._in_halves(block, loop, (begin, main_end, end), body)
        elif schedule.remainder is Remainder.HOISTED and not is_large:
            self.single_vectors(block, loop, (begin, main_end, end), body)
        else:
            self.emit_loop(block, LoopSpec(loop, main_end, end, narrow, narrow, masked=narrow > 1), body)

    def single_vectors(
        self, block: Block, loop: int, limits: tuple[str, str, str], body: Callable[[Block], None]
    ) -> None:
        """Emit the remainder of a row behind its unrolled vectors: full vectors, and one masked vector.

        The masked one is apart, as its mask is the same in every row and phase, and as only it may take long.
        """
        begin, stop, end = limits
        new, lanes, wide = self.function.new, self.lanes, self.step_lanes
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
        """Emit the remainder of a row without masks: full single vectors, half a vector, a quarter, and so on."""
        begin, stop, end = limits
        new, lanes = self.function.new, self.lanes
        count = new(block, f"sub nsw i64 {end}, {begin}")
        if self.step_lanes > lanes:
            here = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-lanes}')}")
            self.emit_loop(block, LoopSpec(loop, stop, here, lanes, lanes), body)
            stop = here
        for half in halved_lanes(self.loops, lanes):
            if half == 1:
                self.emit_loop(block, LoopSpec(loop, stop, end), body)
                return
            part = new(block, f"and i64 {count}, {half}")
            inside = Block(block, loop, stop, half)
            body(inside)
            self._emit_if(block, new(block, f"icmp ne i64 {part}, 0"), inside.lines)
            stop = new(block, f"add nsw i64 {stop}, {part}")

    def _last_vector(self, block: Block, begin: str, end: str, lanes: int) -> tuple[str, str, str]:
        """Return where the masked vector begins, how many lanes are active, and the mask."""
        key, new = ("last vector", begin, end, lanes), self.function.new
        if key not in block.known:
            count = new(block, f"sub nsw i64 {end}, {begin}")
            whole = new(block, f"and i64 {count}, {-lanes}")
            left = new(block, f"and i64 {count}, {lanes - 1}")
            last = new(block, f"add nsw i64 {begin}, {whole}")
            mask = self._mask(block, left, lanes)
            self.function.prefixes[mask] = Prefix(left, lanes, is_partial=True)
            block.known[key] = last, left, mask
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
        if self.schedule.serpentine and (spec.is_range or loop == self.parallel_loop):
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

    def end_of_streams(self, block: Block) -> None:
        """Fence: make streaming stores visible to other threads."""
        if "are_many" in self.__dict__:
            self._emit_if(block, self.are_many, ["  fence seq_cst"], unlikely=True)

    def prefetch(self, block: Block, at: str, how: str) -> None:
        """Prefetch a cache line: `how` is whether to read or write it (0, 1), and into which cache (1 to 3)."""
        self.function.library.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        block.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, {how}, i32 1)")

    def _mask(self, block: Block, count: str, lanes: int, times: int = 1) -> str:
        """The mask of the lanes below a count, repeated `times` times."""
        bits, all_lanes = min(8 * self.schedule.vector_bytes // self.lanes, 64), lanes * times
        kind = f"i{bits if lanes < 1 << bits else 2 * bits}"  # as wide as the widest elements
        is_less = self.function.new(block, f"icmp slt i64 {count}, {lanes}")
        clamped = self.function.new(block, f"select i1 {is_less}, i64 {count}, i64 {lanes}")
        narrow = clamped if kind == "i64" else self.function.new(block, f"trunc i64 {clamped} to {kind}")
        vector = f"<{all_lanes} x {kind}>"
        splat_count = self.function.splat(block, kind, all_lanes, narrow)
        numbers = "<" + ", ".join(f"{kind} {lane % lanes}" for lane in range(all_lanes)) + ">"
        mask = self.function.new(block, f"icmp ugt {vector} {splat_count}, {numbers}")
        if times == 1:
            self.function.prefixes[mask] = Prefix(clamped, lanes)
        return mask
