"""What rows of a stencil read: which of it is the same for several of them, or lies but a few elements apart.

What is read at several places that are less than half a vector apart comes from one vector and the few elements behind
it, moved by some lanes: vectors that lie in two lines of the caches are what such loops take their time for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from jitkernels import machine
from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, memory_type
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.values import Pair
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.native.language.types import NUMBERS

CALCULATING = 24
"""Additions for an element from which on it takes longer to compute it than to read what it is made of."""
MOVED = (4, 8)
"""Bytes of elements that processors with vectors of a whole line move by some lanes in one instruction."""


LEAST_VECTORS = 2
"""Vectors of rows that are kept apart though they lie one behind another."""


@dataclass
class Run:
    """What is read at places of an array that are a few elements apart, by how far it is from the first found."""

    array: Array
    first: Number
    moves: Any
    reads: dict[int, list[Pair]] = field(default_factory=dict)


class NeighbourReads(LoopWriter):
    """Finds what rows share of what they read, and reads it once."""

    @property
    def may_be_neighbours(self) -> bool:
        """Whether rows are made so if they share what they read, and are long enough."""
        if not self.variant.neighbours or self.variant.any_size or self.nest.cost >= CALCULATING:
            return False
        is_apart = any(node.operation in ("gather", "placed", "scan") for node in self.nest.nodes)
        return not self.directions and not is_apart

    def keeps_rows(self, outer: int, inner: int) -> bool:
        """Whether a step of the outer loop reads what the one before it did, in rows that are worth it."""
        count = self.extents[inner]
        if not self.may_be_neighbours:
            return False
        least = LEAST_VECTORS * machine.target().vector_bytes
        if extents.is_moving(count) or extents.value_of(count) * self.nest.widest < least:
            return False
        found: dict[Any, list[Number]] = {}
        for node, place in self.reads(self.targets):
            array = self.values.arrays[id(node)]
            first, steps = self.values.coefficients(array.strides, place)
            if outer in steps:
                found.setdefault(word_of(array, steps), [steps[outer]]).append(first + array.first)
        return any(
            same(one + step, other)
            for step, *firsts in found.values()
            for one, other in product(firsts, firsts)
        )

    def reads(self, targets: Sequence[Target]) -> list[Pair]:
        """What targets read of arrays, each place once."""
        pairs = [pair for one in targets for pair in self.values.needed(one.node, one.place)]
        found = {self.values.key(*pair): pair for pair in pairs}.values()
        return [(node, place) for node, place in found if place and id(node) in self.values.arrays]

    def load_run(self, block: Block, run: Run) -> None:
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

    def whole_vector(self) -> int:
        """Lanes of the widest vector there is."""
        return max(machine.target().vector_bytes // self._widest, 1)

    def rows_share(self, loop: int, targets: Sequence[Target]) -> bool:
        """Whether two steps of a loop read less than twice as much as one."""
        return len(self.runs_of(self.two_rows(loop, targets))) < 2 * len(self.runs_of(targets))

    def two_rows(self, loop: int, targets: Sequence[Target]) -> list[Target]:
        return [
            *targets,
            *(
                replace(one, place=_next(one.place, loop), where=_next(one.where, loop))
                for one in targets
            ),
        ]  # fmt: skip

    def runs_of(self, targets: Sequence[Target]) -> list[Run]:
        """What is read in a step of all loops: what is less than half a vector apart is one run."""
        lanes, found, inner = self.whole_vector(), list[Run](), self.lane_loop
        assert inner is not None, "asked"
        for node, place in self.reads(targets):
            array = self.values.arrays[id(node)]
            first, steps = self.values.coefficients(array.strides, place)
            if not steps:
                continue
            size = NUMBERS[array.dtype].size
            moves = word_of(array, steps)
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


def word_of(array: Array, steps: dict[int, Number]) -> Any:
    """What two reads have in common that are always as far apart."""
    return array.word, tuple((loop, extents.key_of(steps[loop])) for loop in sorted(steps))


def _next(place: IndexMap, loop: int) -> IndexMap:
    """A place one step of a loop later."""
    return tuple(
        (start + sum((step for one, step in moves if one == loop), 0), moves) for start, moves in place
    )
