"""The text of a loop: whole steps of several vectors, and then vectors of which some lanes may be off."""

from collections.abc import Callable

from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.loops import Loops


class LoopWriter(Loops):
    """Writes loops, whatever is done in them."""

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
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        whole = new(block, f"and i64 {count}, {-wide}")
        stop = new(block, f"add nsw i64 {begin}, {whole}")
        self.counted(block, loop, begin, stop, wide, wide, body)
        self.counted(block, loop, stop, end, narrow, narrow, body, masked=narrow > 1)

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
    ) -> None:
        """A loop from begin to end; `masked`: lanes behind the end are off."""
        function = self.function
        counter = function.variable("i64")
        head, inside, after = (function.label() for _ in range(3))
        index = function.name()
        inner = Block(block, loop, index, lanes)
        if loop is None:
            inner.loop = -1
        if masked:
            left = function.new(inner, f"sub nsw i64 {end}, {index}")
            inner.mask = self._mask(inner, left, lanes)
        body(inner)
        following, more = function.name(), function.name()
        block.lines += [
            f"  store i64 {begin}, ptr {counter}",
            f"  br label %{head}",
            f"{head}:",
            f"  {index} = load i64, ptr {counter}",
            f"  {more} = icmp slt i64 {index}, {end}",
            f"  br i1 {more}, label %{inside}, label %{after}",
            f"{inside}:",
            *inner.lines,
            f"  {following} = add nsw i64 {index}, {step}",
            f"  store i64 {following}, ptr {counter}",
            f"  br label %{head}, !llvm.loop !0",
            f"{after}:",
        ]

    def _mask(self, block: Block, count: str, lanes: int, times: int = 1) -> str:
        """Which of the lanes are below a count; of so many vectors of such lanes, one behind another."""
        bits, all_lanes = 8 * self.variant.vector_bytes // self.lanes()[0], lanes * times
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
