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
from itertools import pairwise
from typing import Any

from jitkernels import machine
from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type, memory_type
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.loops import least_steps
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.values import Pair
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.native.language.types import NUMBERS

CALCULATING = 24
"""Additions for an element from which on it takes longer to compute it than to read what it is made of."""
FEW = 3
"""Vectors of a row up to which these come one after another, and not in a loop."""
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
        return self._rows_share(loops[-2], targets) or any(len(run.reads) > 1 for run in self._runs(targets))

    def in_neighbours(self, block: Block, loops: Sequence[int], targets: Sequence[Target]) -> None:
        """Loops one in another: two rows at once, then one that is left."""
        self.nest.variant = f"1 x {machine.target().vector_bytes} bytes, neighbouring rows"
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
        """Rows in whole vectors, the last of which may begin within the one before it.

        Each is read before the one before it is written.
        """
        lanes, new, variable = self._whole_vector(), self.function.new, self.function.variable
        begin, end = self._limits(loop)
        last = new(block, f"sub nsw i64 {end}, {lanes}")
        vectors = self._vectors(self.extents[loop])
        if vectors <= FEW:
            places = [*(str(i * lanes) for i in range(vectors - 1)), last]
            blocks = [Block(block, loop, one, lanes, lines=block.lines) for one in places]
            values = self._computed(blocks[0], targets)
            for here, following in pairwise(blocks):
                found = self._computed(following, targets)
                self._written(here, targets, values)
                values = found
            self._written(blocks[-1], targets, values)
            return
        kinds = [llvm_type(target.node.dtype, lanes) for target in targets]
        held = [("i64", variable("i64")), *((kind, variable(kind)) for kind in kinds)]
        inside, after = self.function.label(), self.function.label()

        def keep(at: Block) -> None:
            now = [at.index, *self._computed(at, targets)]
            at.lines += [
                f"  store {kind} {one}, ptr {place}" for (kind, place), one in zip(held, now, strict=True)
            ]

        def kept(at: Block) -> list[str]:
            return [new(at, f"load {kind}, ptr {place}") for kind, place in held]

        keep(Block(block, loop, begin, lanes, lines=block.lines))
        following = Block(block, loop, "", lanes)
        index, *values = kept(following)
        next_one = new(following, f"add nsw i64 {index}, {lanes}")
        is_whole = new(following, f"icmp slt i64 {next_one}, {last}")
        following.index = new(following, f"select i1 {is_whole}, i64 {next_one}, i64 {last}")
        keep(following)
        self._written(Block(block, loop, index, lanes, lines=following.lines), targets, values)
        block.lines += [
            f"  br label %{inside}",
            f"{inside}:",
            *following.lines,
            f"  br i1 {is_whole}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]
        index, *values = kept(block)
        self._written(Block(block, loop, index, lanes, lines=block.lines), targets, values)

    def _vectors(self, count: Number) -> int:
        """How many vectors rows take, up to `FEW`, of which there is code for each number; one more for all others."""
        lanes = self._whole_vector()
        found = min(-(-extents.value_of(count) // lanes), FEW + 1)
        if isinstance(count, Extent):
            least = max(lanes * (found - 1), lanes - 1)
            if least_steps(count) <= least:
                count.guard(count - least, ">", is_choice=True)
            if found <= FEW:
                count.guard(lanes * found - count, ">=", is_choice=True)
        return found

    def _computed(self, block: Block, targets: Sequence[Target]) -> list[str]:
        """All is read before anything is written: what is written may be what another root reads here."""
        for run in self._runs(targets):
            if len(run.reads) > 1:
                self._load_run(block, run)
        return [self.values.in_lanes(block, target.node, target.place).text for target in targets]

    def _written(self, block: Block, targets: Sequence[Target], values: Sequence[str]) -> None:
        for target, text in zip(targets, values, strict=True):
            assert target.array is not None, "a root's"
            value = Register(text, target.node.dtype, block.lanes)
            self.values.store(block, target.array, target.place, value)

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
