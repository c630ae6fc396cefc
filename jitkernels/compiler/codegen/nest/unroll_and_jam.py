"""Rows of a stencil that are computed together, as they read some of the same elements: these are loaded once for all.

The innermost loop of rows takes two steps at once (unroll and jam). A row ends with a whole vector too, some elements
of which are of the one before it: it is computed before that one is written, as it may be written over what it was
computed from.

It is done in loops, whose arrays are in the caches since the last round, and for results of elements alone, whose rows
may come in any order: what is reduced has its own ways, and loops with a direction write over what other rows read.

Of two rows, vectors of one are written before those of the other, several at a time: stores that change between lines
wait for each of them. On processors where those of a single row wait too, lines of the next rows are asked for.
"""

from collections.abc import Sequence
from itertools import product

from jitkernels import machine
from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type
from jitkernels.graph.emit.loops import least_steps
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.neighbour_reads import NeighbourReads
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.kept import kept_property
from jitkernels.native.language.types import NUMBERS
from jitkernels.records import record

FEW = 6
"""Vectors of a row up to which these come one after another, and not in a loop, where registers hold their results."""
TOGETHER = 2
"""Vectors of longer rows that are computed before they are written."""
LONG = 8
"""Vectors of a row from which on that is worth a loop of its own: a guess from the call that was traced."""
FIRST_CACHE = 48 << 10
"""Bytes that the first cache of a processor holds whose stores wait for lines."""


@record
class Coming:
    """Lines that will be written to, by how many elements they are from a place in an array."""

    array: Array
    place: IndexMap
    distance: str


class NeighbourRows(NeighbourReads):
    """Writes the loops of rows that share what they read."""

    def are_neighbours(self, loops: Sequence[int], targets: Sequence[Target]) -> bool:
        """Whether rows share what they read, and are as long as code for them asks."""
        if not self.may_be_neighbours or len(loops) < 2 or loops[-1] != self.lane_loop or self.streamed:
            return False
        count, lanes = self.extents[loops[-1]], self.whole_vector()
        if extents.is_moving(count) or lanes < 2 or extents.value_of(count) < lanes:
            return False
        return self.rows_share(loops[-2], targets) or any(len(run.reads) > 1 for run in self.runs_of(targets))

    def in_neighbours(self, block: Block, loops: Sequence[int], targets: Sequence[Target]) -> None:
        """Loops one in another: two rows at once, then one that is left."""
        self.nest.variant = f"1 x {machine.target().vector_bytes} bytes, neighbouring rows"
        loop, *inner = loops
        begin, end = self._limits(loop)
        if len(inner) > 1:
            self.counted(block, loop, begin, end, 1, 1, lambda one: self.in_neighbours(one, inner, targets))
            return
        if self.rows_share(loop, targets):
            both, new = self.two_rows(loop, targets), self.function.new
            ahead = self._coming(loops, targets, 2)
            count = new(block, f"sub nsw i64 {end}, {begin}")
            stop = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, -2')}")
            self.counted(
                block, loop, begin, stop, 2, 1, lambda one: self._in_vectors(one, inner[0], both, ahead)
            )
            self.counted(block, loop, stop, end, 1, 1, lambda one: self._last_row(one, inner[0], targets))
            return
        ahead = self._coming(loops, targets, 1)
        self.counted(
            block, loop, begin, end, 1, 1, lambda one: self._in_vectors(one, inner[0], targets, ahead)
        )

    def _coming(self, loops: Sequence[int], targets: Sequence[Target], rows: int) -> list[Coming]:
        """What is asked for: what so many rows write to that come next.

        Which arrays the first cache holds is a guess from the call that was traced.
        """
        loop, inner = loops
        reads = [(self.values.arrays[id(node)], place) for node, place in self.reads(targets)]
        writes = [(one.array, one.place) for one in targets if one.array is not None]
        sizes = self.bytes_along(loop, [*reads, *writes])
        if not machine.target().waits_to_write or sum(sizes.values()) < FIRST_CACHE:
            return []
        found = []
        for array, place in writes:
            steps = self.values.coefficients(array.strides, place)[1]
            step, size = steps.get(loop, 0), self.whole_vector() * NUMBERS[array.dtype].size
            if size < LINE // 2 or not same(steps.get(inner, 0), 1):
                continue  # lines are other ones, or the same again and again
            for i in range(rows):
                far = self.onward(loop, step * (rows + i), step * (i - rows))
                found.append(Coming(array, place, far))
        return found

    def _in_vectors(
        self, block: Block, loop: int, targets: Sequence[Target], ahead: Sequence[Coming]
    ) -> None:
        """Rows in whole vectors, the last of which may begin within the one before it."""
        lanes, new = self.whole_vector(), self.function.new
        begin, end = self._limits(loop)
        last = new(block, f"sub nsw i64 {end}, {lanes}")
        vectors = self._vectors(self.extents[loop])
        if vectors <= self._few_vectors:
            places = [*(str(i * lanes) for i in range(vectors - 1)), last]
            blocks = [Block(block, loop, one, lanes, lines=block.lines) for one in places]
            self._together(blocks, targets, [])
            return
        stop = begin
        if extents.value_of(self.extents[loop]) >= LONG * lanes:
            stop = self._by_several(block, loop, (begin, last), targets, ahead)
        self._one_by_one(block, loop, (stop, last), targets, ahead)

    def _last_row(self, block: Block, loop: int, targets: Sequence[Target]) -> None:
        """The row that is left of two at once: code for speed would be for it alone."""
        if self._vectors(self.extents[loop]) == 1:
            self._in_vectors(block, loop, targets, [])
            return
        begin, end = self._limits(loop)
        last = self.function.new(block, f"sub nsw i64 {end}, {self.whole_vector()}")
        self._one_by_one(block, loop, (begin, last), targets, [])

    def _by_several(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        targets: Sequence[Target],
        ahead: Sequence[Coming],
    ) -> str:
        """Several vectors at a time, and where the others begin, of which there are two at least."""
        lanes, new = self.whole_vector(), self.function.new
        begin, last = limits

        def several(one: Block) -> None:
            others = [new(one, f"add nsw i64 {one.index}, {i * lanes}") for i in range(1, TOGETHER)]
            blocks = [Block(block, loop, place, lanes, lines=one.lines) for place in (one.index, *others)]
            self._together(blocks, targets, ahead)

        step = lanes * TOGETHER
        before = new(block, f"sub nsw i64 {new(block, f'sub nsw i64 {last}, {begin}')}, 1")
        whole = new(block, f"and i64 {before}, {-step}")
        stop = new(block, f"add nsw i64 {begin}, {whole}")
        self.counted(block, loop, begin, stop, step, lanes, several)
        return stop

    def _together(self, blocks: Sequence[Block], targets: Sequence[Target], ahead: Sequence[Coming]) -> None:
        """Vectors that are all computed, and then written."""
        self._written(blocks, targets, [self._computed(one, targets) for one in blocks], ahead)

    def _one_by_one(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        targets: Sequence[Target],
        ahead: Sequence[Coming],
    ) -> None:
        """From a place to where the last vector of a row begins, each held until the next one is computed."""
        lanes, new, variable = self.whole_vector(), self.function.new, self.function.variable
        begin, last = limits
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
        self._written([Block(block, loop, index, lanes, lines=following.lines)], targets, [values], ahead)
        block.lines += [
            f"  br label %{inside}",
            f"{inside}:",
            *following.lines,
            f"  br i1 {is_whole}, label %{inside}, label %{after}, !llvm.loop !0",
            f"{after}:",
        ]
        index, *values = kept(block)
        self._written([Block(block, loop, index, lanes, lines=block.lines)], targets, [values], ahead)

    @kept_property
    def _few_vectors(self) -> int:
        """Vectors of a row up to which two rows are computed before they are written: most registers are for that."""
        return max(1, min(FEW, machine.target().registers * 3 // 8 // (2 * len(self.targets))))

    def _vectors(self, count: Number) -> int:
        """How many vectors rows take, up to `_few_vectors`, with code for each number; one more for all others."""
        lanes, few = self.whole_vector(), self._few_vectors
        found = min(-(-extents.value_of(count) // lanes), few + 1)
        if isinstance(count, Extent):
            least = max(lanes * (found - 1), lanes - 1)
            if least_steps(count) <= least:
                count.guard(count - least, ">", is_choice=True)
            if found <= few:
                count.guard(lanes * found - count, ">=", is_choice=True)
        return found

    def _computed(self, block: Block, targets: Sequence[Target]) -> list[str]:
        """All is read before anything is written: what is written may be what another root reads here."""
        for run in self.runs_of(targets):
            if len(run.reads) > 1:
                self.load_run(block, run)
        return [self.values.in_lanes(block, target.node, target.place).text for target in targets]

    def _written(
        self,
        blocks: Sequence[Block],
        targets: Sequence[Target],
        values: Sequence[Sequence[str]],
        ahead: Sequence[Coming],
    ) -> None:
        """Vectors, of one target after another: in lines of the caches that are at hand."""
        for number, target in enumerate(targets):
            assert target.array is not None, "a root's"
            for block, found in zip(blocks, values, strict=True):
                value = Register(found[number], target.node.dtype, block.lanes)
                self.values.store(block, target.array, target.place, value)
        for block, one in product(blocks, ahead):
            moves = [(self.function.block, one.distance)]
            _, pointer, _ = self.values.address(block, one.array, one.place, moves)
            self.prefetch(block, pointer, "i32 1, i32 3")
