"""Runs of several vectors, a new one of which is read at each step of a loop: rows that a vector is multiplied with."""

from collections.abc import Callable

from jitkernels import machine
from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit import whole_lines
from jitkernels.graph.emit.blocks import Block, memory_type
from jitkernels.graph.emit.loop_text import RUN, LoopWriter
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.values import Pair
from jitkernels.graph.emit.whole_lines import LINE, Held
from jitkernels.graph.extents import Number, same
from jitkernels.native.language.types import NUMBERS
from jitkernels.records import record

RUNS_AHEAD = 4
"""Steps that runs are asked for before they are read."""
FAR = 1 << 20
"""Bytes of an array that is not in the second cache."""
NOT_NEAR = 40 << 10
"""And of one of which much is not in the first: what is there is read as fast as vectors are put together."""
LEAST_VECTORS = 4
"""Of runs for which it is worth it to read a line more."""


@record
class LongRun:
    """An array that is read in runs: an element's place, how far it is to the next run, whether all begin lines."""

    array: Array
    place: IndexMap
    step: Number
    begins_line: bool


class Runs(LoopWriter):
    """Reads runs."""

    def _long_runs(self, loop: int, targets: list[Target]) -> list[LongRun]:
        """Arrays that are read in runs. Constants of the code begin with lines."""
        found = []
        for node, place in self._read(targets):
            array = self.values.arrays[id(node)]
            first, steps = self.values.coefficients(array.strides, place)
            if self.lane_loop is not None and same(steps.get(self.lane_loop, 0), 1) and loop in steps:
                begins = node.operation == "input" and "in_lines" in node.options and same(first, 0)
                found.append(LongRun(array, place, steps[loop], begins))
        return found

    def _read(self, targets: list[Target]) -> list[Pair]:
        """What is read of arrays, each element once; not of those that are read in other ways, too."""
        pairs = {
            self.values.key(*pair): pair
            for one in targets
            for pair in self.values.needed(one.node, one.place)
        }
        arrays = self.values.arrays
        other_ways = {one.word for one in self.values.stashed.values()}
        other_ways |= {
            self.values.indexed(node).word for node, _ in pairs.values() if node.operation == "gather"
        }
        return [
            pair
            for pair in pairs.values()
            if id(pair[0]) in arrays and arrays[id(pair[0])].word not in other_ways
        ]

    def _bytes_now(self, loop: int, array: Array) -> int:
        """What runs take in all, in the call that is traced."""
        assert self.lane_loop is not None, "of runs"
        lanes = extents.value_of(self.extents[self.lane_loop])
        return extents.value_of(self.extents[loop]) * lanes * NUMBERS[array.dtype].size

    def in_runs(
        self, block: Block, loops: list[int], targets: list[Target], body: Callable[[Block], None]
    ) -> None:
        """Go through runs, by whole lines where they begin within lines and all do so at the same place of one.

        They do where one is whole lines behind the other, as rows of a power of two of elements are.
        """
        runs = self._unaligned(block, loops, targets)
        if not runs:
            body(block)
            return
        new = self.function.new
        lines, plain = Block(block, -1), Block(block, -1)
        beyond, fits = "0", "true"
        for run in runs:
            array = run.array
            _, pointer, _ = self.values.address(block, array, run.place)
            address = new(block, f"ptrtoint ptr {pointer} to i64")
            beyond = new(block, f"or i64 {beyond}, {address}")
            rest = new(
                block, f"and i64 {self.function.extent(run.step)}, {LINE // NUMBERS[array.dtype].size - 1}"
            )
            fits = new(block, f"and i1 {fits}, {new(block, f'icmp eq i64 {rest}, 0')}")
            lines.known["shift", array.word] = whole_lines.shift(self.function, lines, address, array.dtype)
        begins = new(block, f"icmp ne i64 {new(block, f'and i64 {beyond}, {LINE - 1}')}, 0")
        body(lines)
        body(plain)
        there, here, after = (self.function.label() for _ in range(3))
        block.lines += [
            f"  br i1 {new(block, f'and i1 {begins}, {fits}')}, label %{there}, label %{here}",
            *(f"{there}:", *lines.lines, f"  br label %{after}"),
            *(f"{here}:", *plain.lines, f"  br label %{after}", f"{after}:"),
        ]

    def _unaligned(self, block: Block, loops: list[int], targets: list[Target]) -> list[LongRun]:
        """Runs that are read so where they begin within lines; none where it is not worth it, or not possible."""
        runs = self._far_runs(block, loops[0], targets) if len(loops) == 1 else []
        words = [run.array.word for run in runs]
        # At several places of an array runs begin elsewhere in a line.
        able = all(
            NUMBERS[run.array.dtype].memory in whole_lines.PICKED and words.count(run.array.word) == 1
            for run in runs
        )
        return runs if able and not all(run.begins_line for run in runs) else []

    def _far_runs(
        self, block: Block, loop: int, targets: list[Target], least: int = LEAST_VECTORS
    ) -> list[LongRun]:
        """Runs of so many vectors at least, from the second cache or further away, each whole lines behind another.

        A guess from the call that was traced, on which nothing but speed depends.
        """
        if self.lane_loop is None or self.lane_loop in targets[0].loops or loop in self.directions:
            return []
        if self.variant.vector_bytes != LINE or not machine.target().is_x86 or self.variant.any_size:
            return []
        if self.values.mask(block):
            return []
        runs, lanes = self._long_runs(loop, targets), self.values.lanes(block)
        narrow, wide = self.lanes()
        left = extents.value_of(self.extents[self.lane_loop]) % (2 * wide)
        if lanes == wide and left < wide and self._are_long_runs(self.lane_loop, 2 * wide, narrow):
            return []  # most rows are done in steps of twice as many lanes
        sizes = [NUMBERS[run.array.dtype].size for run in runs]
        apart = [extents.value_of(run.step) * size for run, size in zip(runs, sizes, strict=True)]
        far = any(self._bytes_now(loop, run.array) >= NOT_NEAR for run in runs)
        long = all(lanes * size >= least * LINE for size in sizes)
        return runs if far and long and not any(one % LINE for one in apart) else []

    def one_by_one(
        self,
        block: Block,
        loop: int,
        limits: tuple[str, str],
        targets: list[Target],
        body: Callable[[Block], None],
    ) -> None:
        """A loop of single steps; numbers that lie one behind another are read by the vector beside long runs.

        What is read besides a run takes of the time in which the first cache takes lines from the second: 1.92 us
        instead of 1.98 for four products with 64 kB each (Emerald Rapids).
        """
        numbers = self._numbers(block, loop, targets)
        if not numbers:
            self.counted(block, loop, *limits, 1, 1, body)
            return
        new, width = self.function.new, min(LINE // NUMBERS[array.dtype].size for array, _ in numbers)

        def some(inside: Block) -> None:
            left = new(inside, f"sub nsw i64 {limits[1]}, {inside.index}")
            less = new(inside, f"icmp slt i64 {left}, {width}")
            count = new(inside, f"select i1 {less}, i64 {left}, i64 {width}")
            last = new(inside, f"add nsw i64 {inside.index}, {count}")
            for array, place in numbers:
                _, pointer, _ = self.values.address(inside, array, place)
                here = new(
                    inside, f"getelementptr {memory_type(array.dtype)}, ptr {pointer}, i64 {inside.index}"
                )
                held = self.function.variable(memory_type(array.dtype, width))
                whole_lines.hold(self.function, inside, array.dtype, here, count, Held(held, width))
                inside.known["held", array.word] = Held(held, width)
            self.counted(inside, loop, inside.index, last, 1, 1, body, enters=True)

        self.counted(block, None, *limits, width, 1, some)

    def _numbers(self, block: Block, loop: int, targets: list[Target]) -> list[tuple[Array, IndexMap]]:
        """Arrays that are read beside runs, at one place: the next element at each step of a loop.

        Beside shorter runs than of so many vectors it takes as long to pick them, and beside those that begin within
        lines it wins half as much, which the time of LLVM is not worth.
        """
        runs = self._far_runs(block, loop, targets, RUN)
        if not runs or not all(run.begins_line for run in runs):
            return []
        found: dict[int, list[tuple[Array, IndexMap, bool]]] = {}
        for node, place in self._read(targets):
            array = self.values.arrays[id(node)]
            steps = self.values.coefficients(array.strides, place)[1]
            is_next = same(steps.get(loop, 0), 1) and self.lane_loop not in steps
            is_next = is_next and NUMBERS[array.dtype].memory in whole_lines.PICKED
            found.setdefault(array.word, []).append((array, place, is_next))
        return [
            (array, place) for ((array, place, is_next), *others) in found.values() if is_next and not others
        ]

    def fetch_runs(self, block: Block, loop: int, targets: list[Target]) -> None:
        """What comes some steps later of arrays that are read in runs, a new one at each step of a loop.

        Processors foresee what lies behind what is read, and no runs that are far from one another. What is in the
        second cache comes soon enough: a guess from the call that was traced.
        """
        new = self.function.new
        for run in self._long_runs(loop, targets):
            if self._bytes_now(loop, run.array) < FAR:
                continue
            size = NUMBERS[run.array.dtype].size
            _, pointer, _ = self.values.address(block, run.array, run.place)
            ahead = self.function.extent(run.step * (RUNS_AHEAD * size))
            ahead = new(block, f"getelementptr i8, ptr {pointer}, i64 {ahead}")
            for line in range(self.values.lanes(block) * size // LINE):
                at = new(block, f"getelementptr i8, ptr {ahead}, i64 {line * LINE}")
                self.prefetch(block, at, "i32 0, i32 3")
