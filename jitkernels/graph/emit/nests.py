"""One nest of a schedule as a function ``i64 @name(ptr frame, i64 begin, i64 end)``: a part of its outermost loop.

Rows are the outer loops. In every row come phases: reductions whose inputs are known, each with what else the loops of
its phase compute; the columns of a root are stored in the phase behind its last reduction. Steps of one of the loops are
lanes of vectors: of the one along which most arrays lie without gaps. If that is a loop of columns, a reduction ends with
one number for the row. If it is a loop of rows, every lane is a row of its own.
"""

from collections.abc import Callable

from jitkernels.graph.emit.blocks import Block, Register, llvm_type
from jitkernels.graph.emit.conversions import spread
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.reductions import Accumulator
from jitkernels.graph.emit.targets import Target

CHUNK = 4096
"""Elements of which a sum of floats is one part."""


class Emitter(LoopWriter):
    """Writes one nest."""

    def text(self) -> str:
        """The function."""
        block = self.function.block
        self._rows(block, self.order)
        body = "\n".join([*self.function.memory, *block.lines])
        return (
            f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) noinline nounwind {{\n{body}\n"
            f"  ret i64 0\n}}"
        )

    def _rows(self, block: Block, loops: list[int]) -> None:
        """The loops of rows, one in another, and what is done in a row."""
        if not loops:
            self._row(block)
            return
        loop, *inner = loops
        self._loop(block, loop, self._limits(loop), lambda inside: self._rows(inside, inner))

    def _row(self, block: Block) -> None:
        """All phases of one row, or of as many as there are lanes."""
        for phase in range(1, max((target.phase for target in self.targets), default=0) + 1):
            inner: dict[tuple[int, ...], list[Target]] = {}
            for target in self.targets:
                if target.phase == phase and target.loops:
                    inner.setdefault(target.loops, []).append(target)
            for loops, targets in inner.items():
                self._phase(block, self._inner_order(loops), targets)
            for target in self.targets:
                if target.phase == phase and not target.loops and target.array is not None:
                    value = self.values.value(block, target.node, target.place)
                    self.values.store(block, target.array, target.place, value)

    def _phase(self, block: Block, loops: list[int], targets: list[Target]) -> None:
        """One nest of inner loops: reductions take their elements, roots are stored."""
        vertical = self.lane_loop not in loops
        narrow, wide = self.lanes()
        reductions = [target for target in targets if target.reduction is not None]
        lanes = self.values.lanes(block) if vertical else wide
        found = [self._accumulator(target, lanes) for target in reductions]
        for accumulator in found:
            accumulator.begin(block)
        state = {"accumulators": found}

        def step(inside: Block) -> None:
            # All is read before anything is written: what is written may be what another root reads here.
            stored = [
                (target, self.values.value(inside, target.node, target.place))
                for target in targets
                if target.reduction is None
            ]
            for target, value in stored:
                assert target.array is not None, "a root"
                self.values.store(inside, target.array, target.place, value)
            for target, accumulator in zip(reductions, state["accumulators"], strict=True):
                value = self.values.in_lanes(inside, target.node, target.place)
                index = self._index(inside, target) if accumulator.is_index else ""
                accumulator.take(inside, value, self.values.mask(inside), index)

        parts = any(accumulator.in_parts for accumulator in found)
        self._inner(block, loops, step, state, parts=parts, narrow=narrow)
        for target, accumulator in zip(reductions, state["accumulators"], strict=True):
            assert target.reduction is not None, "chosen"
            if not vertical:
                accumulator = accumulator.narrowed(block, 1)
            register = accumulator.result(block)
            self.values.reduced[self.values.key(*target.reduction)] = block, register

    def _inner(
        self,
        block: Block,
        loops: list[int],
        step: Callable[[Block], None],
        state: dict[str, list[Accumulator]],
        *,
        parts: bool,
        narrow: int,
    ) -> None:
        loop, *others = loops
        limits = self._limits(loop)
        if others:
            if self.lane_loop not in loops or not state["accumulators"]:
                self._loop(
                    block,
                    loop,
                    limits,
                    lambda inside: self._inner(inside, others, step, state, parts=parts, narrow=narrow),
                )
                return
            # Accumulators stay as wide as they are through all but the innermost loop.
            self.counted(
                block, loop, *limits, 1, 1,
                lambda inside: self._innermost(inside, others, step, state, parts=parts),
            )  # fmt: skip
            return
        accumulators = state["accumulators"]

        def first(inside: Block) -> None:
            for accumulator in accumulators:
                accumulator.begin_part(inside)

        def last(inside: Block) -> None:
            for accumulator in accumulators:
                accumulator.end_part(inside)

        if loop != self.lane_loop:
            if not parts:
                self.counted(block, loop, *limits, 1, 1, step)
                return
            begin, end = limits

            def chunk(inside: Block) -> None:
                new = self.function.new
                first(inside)
                ahead = new(inside, f"add nsw i64 {inside.index}, {CHUNK // 16}")
                less = new(inside, f"icmp slt i64 {ahead}, {end}")
                until = new(inside, f"select i1 {less}, i64 {ahead}, i64 {end}")
                self.counted(inside, loop, inside.index, until, 1, 1, step)
                last(inside)

            self.counted(block, None, begin, end, CHUNK // 16, 1, chunk)
            return
        _, wide = self.lanes()
        if not accumulators:
            self.in_lanes(block, loop, limits, narrow, wide, step, step)
            return

        def between(inside: Block) -> None:
            if narrow == wide:
                first(inside)
                return
            state["accumulators"] = [one.narrowed(inside, narrow) for one in accumulators]
            for one in state["accumulators"]:
                one.begin_part(inside)

        part = max(CHUNK, wide) if parts else 0
        self.in_lanes(block, loop, limits, narrow, wide, step, step, between, part, (first, last))
        for one in state["accumulators"]:
            one.end_part(block)

    def _innermost(
        self,
        block: Block,
        loops: list[int],
        step: Callable[[Block], None],
        state: dict[str, list[Accumulator]],
        *,
        parts: bool,
    ) -> None:
        """Inner loops inside of another loop of one reduction: with accumulators that all its steps share."""
        loop, *others = loops
        limits = self._limits(loop)
        if others:
            self.counted(
                block, loop, *limits, 1, 1,
                lambda inside: self._innermost(inside, others, step, state, parts=parts),
            )  # fmt: skip
            return
        for one in state["accumulators"]:
            one.begin_part(block)
        _, wide = self.lanes()
        if loop == self.lane_loop:
            self.in_lanes(block, loop, limits, wide, wide, step, step)
        else:
            self.counted(block, loop, *limits, 1, 1, step)
        for one in state["accumulators"]:
            one.end_part(block)

    def _index(self, block: Block, target: Target) -> str:
        """The number of an element along the axis that is searched, in all lanes."""
        (loop,) = target.loops
        found = next(one for one in block.path() if one.loop == loop)
        lanes = self.values.lanes(block)
        everywhere = self.values.function
        if lanes == 1:
            return found.index
        text = spread(everywhere, block, Register(found.index, "int64"), lanes).text
        if loop != self.lane_loop:
            return text
        numbers = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"
        return everywhere.new(block, f"add nsw {llvm_type('int64', lanes)} {text}, {numbers}")

    def _accumulator(self, target: Target, lanes: int) -> Accumulator:
        assert target.reduction is not None, "of a reduction"
        node = target.reduction[0]
        kind = node.options["kind"]
        dtype = target.node.dtype if kind in ("argmin", "argmax") else node.dtype
        return Accumulator(self.values, kind, dtype, lanes)
