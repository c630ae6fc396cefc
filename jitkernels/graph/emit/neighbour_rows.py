"""Rows of a stencil that are computed together, as they read some of the same elements: these are loaded once for all.

The innermost loop of rows takes two steps at once (unroll and jam), and what rows read at several places that are less
than half a vector apart comes from one vector and the few elements behind it, moved by some lanes: vectors that lie in
two lines of the caches are what such loops take their time for. A row ends with a whole vector too, some elements of
which are of the one before it. Each vector is computed before the one before it is written, and may be written over
what it was computed from.

It is done in loops, whose arrays are in the caches since the last round, and for results of elements alone, whose rows
may come in any order: what is reduced has its own ways, and loops with a direction write over what other rows read.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jitkernels import machine
from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type, memory_type
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.loops import least_steps
from jitkernels.graph.emit.memory import LINE, Array
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.values import Pair
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.native.language.types import NUMBERS

CALCULATING = 24
"""Additions for an element from which on it takes longer to compute it than to read what it is made of."""
MOVED = (4, 8)
"""Bytes of elements that processors with vectors of a whole line move by some lanes in one instruction."""


@dataclass
class Run:
    """What is read at places of an array that are a few elements apart, by how far it is from the first found."""

    array: Array
    first: Number
    moves: Any
    reads: dict[int, list[Pair]] = field(default_factory=dict)


class NeighbourRows(LoopWriter):
    """Writes the loops of rows that share what they read."""

    def are_neighbours(self, loops: Sequence[int], targets: Sequence[Target]) -> bool:
        """Whether rows share what they read, and are as long as code for them asks."""
        if not self.variant.neighbours or self.variant.any_size or self.nest.cost >= CALCULATING:
            return False
        if len(loops) < 2 or loops[-1] != self.lane_loop or self.directions or self.scanned or self.streamed:
            return False
        if any(node.operation in ("gather", "placed") for node in self.nest.nodes):
            return False
        count, lanes = self.extents[loops[-1]], self._whole_vector()
        if extents.is_moving(count) or lanes < 2 or extents.value_of(count) < lanes:
            return False
        if not (
            self._rows_share(loops[-2], targets) or any(len(run.reads) > 1 for run in self._runs(targets))
        ):
            return False
        if isinstance(count, Extent) and least_steps(count) < lanes:
            count.guard(count - lanes, ">=", is_choice=True)
        return True

    def in_neighbours(self, block: Block, loops: Sequence[int], targets: Sequence[Target]) -> None:
        """Loops one in another: two rows at once, then one that is left."""
        loop, *inner = loops
        begin, end = self._limits(loop)
        if len(inner) > 1:
            self.counted(block, loop, begin, end, 1, 1, lambda one: self.in_neighbours(one, inner, targets))
            return
        if self._rows_share(loop, targets):
            both, new = self._two_rows(loop, targets), self.function.new
            count = new(block, f"sub nsw i64 {end}, {begin}")
            stop = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, -2')}")
            self.counted(block, loop, begin, stop, 2, 1, lambda one: self._in_vectors(one, inner[0], both))
            begin = stop
        self.counted(block, loop, begin, end, 1, 1, lambda one: self._in_vectors(one, inner[0], targets))

    def _in_vectors(self, block: Block, loop: int, targets: Sequence[Target]) -> None:
        """Rows in whole vectors, the last of which may begin within the one before it."""
        lanes, new, variable = self._whole_vector(), self.function.new, self.function.variable
        begin, end = self._limits(loop)
        last = new(block, f"sub nsw i64 {end}, {lanes}")
        kinds = [llvm_type(target.node.dtype, lanes) for target in targets]
        place, values = variable("i64"), [variable(kind) for kind in kinds]
        inside, after = self.function.label(), self.function.label()

        def read(at: Block) -> None:
            """All is read before anything is written: what is written may be what another root reads here."""
            for run in self._runs(targets):
                if len(run.reads) > 1:
                    self._load_run(at, run)
            found = [self.values.in_lanes(at, target.node, target.place).text for target in targets]
            for kind, text, value in zip(kinds, found, values, strict=True):
                at.lines.append(f"  store {kind} {text}, ptr {value}")
            at.lines.append(f"  store i64 {at.index}, ptr {place}")

        def write(at: Block, found: list[str]) -> None:
            for target, text in zip(targets, found, strict=True):
                assert target.array is not None, "a root's"
                self.values.store(at, target.array, target.place, Register(text, target.node.dtype, lanes))

        def written(around: Block) -> tuple[str, list[str]]:
            found = [
                new(around, f"load {kind}, ptr {value}") for kind, value in zip(kinds, values, strict=True)
            ]
            return new(around, f"load i64, ptr {place}"), found

        read(Block(block, loop, begin, lanes, lines=block.lines))
        following = Block(block, loop, "", lanes)
        index, found = written(following)
        following.index = self._least(following, new(following, f"add nsw i64 {index}, {lanes}"), last)
        read(following)
        write(Block(block, loop, index, lanes, lines=following.lines), found)
        more = new(following, f"icmp slt i64 {following.index}, {last}")
        some = new(block, f"icmp slt i64 {begin}, {last}")
        block.lines += [
            f"  br i1 {some}, label %{inside}, label %{after}",
            f"{inside}:",
            *following.lines,
            f"  br i1 {more}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]
        index, found = written(block)
        write(Block(block, loop, index, lanes, lines=block.lines), found)

    def _least(self, block: Block, one: str, other: str) -> str:
        is_less = self.function.new(block, f"icmp slt i64 {one}, {other}")
        return self.function.new(block, f"select i1 {is_less}, i64 {one}, i64 {other}")

    def _load_run(self, block: Block, run: Run) -> None:
        """A vector, and those that begin at some of its lanes."""
        lanes, new, dtype = self.values.lanes(block), self.function.new, run.array.dtype
        begin, size = min(run.reads), NUMBERS[dtype].size
        span = max(run.reads) - begin
        kind, few = memory_type(dtype, lanes), memory_type(dtype, span)
        home, pointer, _ = self.values.address(block, run.array, run.reads[begin][0][1])
        first = self.values.read(home, block, run.array, pointer, 1).text
        at = new(home, f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {lanes}")
        behind = new(home, f"load {few}, ptr {at}, align {size}")
        if span == 1:
            behind = new(home, f"insertelement {kind} poison, {few} {behind}, i64 0")
        else:
            order = ", ".join(f"i32 {lane}" if lane < span else "i32 poison" for lane in range(lanes))
            behind = new(home, f"shufflevector {few} {behind}, {few} poison, <{lanes} x i32> <{order}>")
        for distance, pairs in run.reads.items():
            text = first
            if distance > begin:
                order = ", ".join(f"i32 {lane + distance - begin}" for lane in range(lanes))
                text = new(home, f"shufflevector {kind} {first}, {kind} {behind}, <{lanes} x i32> <{order}>")
            for pair in pairs:
                home.known[self.values.key(*pair)] = home, Register(text, dtype, lanes)

    def _whole_vector(self) -> int:
        """Lanes of the widest vector there is."""
        return max(machine.target().vector_bytes // self._widest, 1)

    def _rows_share(self, loop: int, targets: Sequence[Target]) -> bool:
        """Whether two steps of a loop read less than twice as much as one."""
        return len(self._runs(self._two_rows(loop, targets))) < 2 * len(self._runs(targets))

    def _two_rows(self, loop: int, targets: Sequence[Target]) -> list[Target]:
        return [
            *targets,
            *(
                replace(one, place=_next(one.place, loop), where=_next(one.where, loop))
                for one in targets
            ),
        ]  # fmt: skip

    def _runs(self, targets: Sequence[Target]) -> list[Run]:
        """What is read in a step of all loops: what is less than half a vector apart is one run."""
        lanes, found, inner = self._whole_vector(), list[Run](), self.lane_loop
        assert inner is not None, "asked"
        pairs = [pair for one in targets for pair in self.values.needed(one.node, one.place)]
        for node, place in {self.values.key(*pair): pair for pair in pairs}.values():
            array = self.values.arrays.get(id(node))
            if array is None or not place:
                continue
            first, steps = self.values.coefficients(array.strides, place)
            if not steps:
                continue
            size = NUMBERS[array.dtype].size
            moves = array.word, tuple((loop, extents.key_of(steps[loop])) for loop in sorted(steps))
            is_moved = same(steps.get(inner, 0), 1) and lanes * size == LINE and size in MOVED
            most = lanes // 2 if is_moved else 0
            for run in found:
                apart = first + array.first - run.first
                if run.moves == moves and not isinstance(apart, Extent):
                    places = [*run.reads, int(apart)]
                    if max(places) - min(places) <= most:
                        run.reads.setdefault(int(apart), []).append((node, place))
                        break
            else:
                found.append(Run(array, first + array.first, moves, {0: [(node, place)]}))
        return found


def _next(place: IndexMap, loop: int) -> IndexMap:
    """A place one step of a loop later."""
    return tuple(
        (start + sum((step for one, step in moves if one == loop), 0), moves) for start, moves in place
    )
