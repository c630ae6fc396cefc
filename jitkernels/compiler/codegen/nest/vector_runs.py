"""Vector runs: arrays of which a loop loads several adjacent vectors per iteration, as of a matrix in a product."""

from collections.abc import Callable

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core import aligned_loads
from jitkernels.compiler.codegen.core.aligned_loads import RotatingVector
from jitkernels.compiler.codegen.core.ir_builder import Block, memory_type
from jitkernels.compiler.codegen.nest.loop_emitter import MAX_ACCUMULATOR_VECTORS, LoopEmitter, LoopSpec
from jitkernels.compiler.codegen.nest.nest_targets import NestTarget
from jitkernels.compiler.codegen.nest.value_emitter import Pair
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.frozen_dataclass import frozen_dataclass

RUNS_AHEAD = 4
"""The prefetch distance of runs, in iterations."""
MIN_BEYOND_L2_BYTES = 1 << 20
"""The least bytes of an array that is not in L2."""
NOT_NEAR = 40 << 10
"""The least bytes of an array of which much is not in L1: from L1 plain loads are as fast as permuted ones."""
MIN_RUN_VECTORS = 4
"""The least vectors of a run for which an additional line pays."""


@frozen_dataclass
class VectorRun:
    """An array that is loaded in runs: an access map, the stride between runs, and whether all are aligned."""

    array: StridedArray
    access_map: IndexMap
    step: Number
    begins_line: bool


class VectorRuns(LoopEmitter):
    """Emits runs: aligned loads, rotating vectors, and prefetches."""

    def _vector_runs(self, loop: int, targets: list[NestTarget]) -> list[VectorRun]:
        """The arrays that are loaded in runs. Constants of the code are aligned to cache lines."""
        results = []
        for node, index_map in self._read(targets):
            array = self.values.arrays[node]
            first, steps = self.values.coefficients(array.strides, index_map)
            if self.lane_loop is not None and same(steps.get(self.lane_loop, 0), 1) and loop in steps:
                begins = node.operation == "input" and "cache_aligned" in node.options and same(first, 0)
                results.append(VectorRun(array, index_map, steps[loop], begins))
        return results

    def _read(self, targets: list[NestTarget]) -> list[Pair]:
        """The array elements that targets load, once each; without arrays that are accessed in other ways too."""
        pairs = {
            self.values.key(*pair): pair
            for target in targets
            for pair in self.values.needed(target.node, target.index_map)
        }
        arrays = self.values.arrays
        other_ways = {array.word for array in self.values.scratch_of_value.values()}
        other_ways |= {self.values.indexed(node).word for node, _ in pairs.values() if node.operation == "gather"}
        return [pair for pair in pairs.values() if pair[0] in arrays and arrays[pair[0]].word not in other_ways]

    def _bytes_now(self, loop: int, array: StridedArray) -> int:
        """The bytes of all runs in the traced call."""
        lanes = symbolic_dims.value_of(self.extents[self.vector_loop])
        return symbolic_dims.value_of(self.extents[loop]) * lanes * NUMBERS[array.dtype].size

    def in_runs(self, block: Block, loops: list[int], targets: list[NestTarget], body: Callable[[Block], None]) -> None:
        """Emit `body` with aligned loads of runs, versioned at run time: if all runs have the same misalignment.

        They have it where their stride is a multiple of a cache line, as for rows of a power of two of elements.
        """
        runs = self._unaligned(block, loops, targets)
        if not runs:
            body(block)
            return
        new = self.function.new
        aligned, unaligned = Block(block, -1), Block(block, -1)
        address_bits, is_multiple = "0", "true"
        for run in runs:
            array = run.array
            _, pointer, _ = self.values.address(block, array, run.access_map)
            address = new(block, f"ptrtoint ptr {pointer} to i64")
            address_bits = new(block, f"or i64 {address_bits}, {address}")
            remainder = new(
                block, f"and i64 {self.function.extent(run.step)}, {CACHE_LINE_BYTES // NUMBERS[array.dtype].size - 1}"
            )
            is_multiple = new(block, f"and i1 {is_multiple}, {new(block, f'icmp eq i64 {remainder}, 0')}")
            aligned.known["shift", array.word] = aligned_loads.misalignment_of(
                self.function, aligned, address, array.dtype
            )
        is_misaligned = new(block, f"icmp ne i64 {new(block, f'and i64 {address_bits}, {CACHE_LINE_BYTES - 1}')}, 0")
        body(aligned)
        body(unaligned)
        yes, no, after = (self.function.label() for _ in range(3))
        block.lines += [
            f"  br i1 {new(block, f'and i1 {is_misaligned}, {is_multiple}')}, label %{yes}, label %{no}",
            *(f"{yes}:", *aligned.lines, f"  br label %{after}"),
            *(f"{no}:", *unaligned.lines, f"  br label %{after}", f"{after}:"),
        ]

    def _unaligned(self, block: Block, loops: list[int], targets: list[NestTarget]) -> list[VectorRun]:
        """The runs to load by aligned lines; none where that does not pay or is not possible."""
        runs = self._far_runs(block, loops[0], targets) if len(loops) == 1 else []
        words = [self.values.arrays[node].word for node, _ in self._read(targets)]
        # Several access maps of an array, or several parts of one, have several misalignments.
        is_supported = all(
            NUMBERS[run.array.dtype].memory in aligned_loads.PICKED and words.count(run.array.word) == 1 for run in runs
        )
        return runs if is_supported and not all(run.begins_line for run in runs) else []

    def _far_runs(
        self, block: Block, loop: int, targets: list[NestTarget], least: int = MIN_RUN_VECTORS
    ) -> list[VectorRun]:
        """Runs of at least `least` vectors, from L2 or further away, whose stride is a multiple of a cache line.

        A heuristic from the traced call's sizes: only speed depends on it.
        """
        if self.lane_loop is None or self.lane_loop in targets[0].loops or loop in self.directions:
            return []
        if self.variant.vector_bytes != CACHE_LINE_BYTES or not cpu_target.target().is_x86 or self.variant.any_size:
            return []
        if self.values.mask(block):
            return []
        runs, lanes = self._vector_runs(loop, targets), self.values.lanes(block)
        narrow, wide = self.lanes()
        left = symbolic_dims.value_of(self.extents[self.lane_loop]) % (2 * wide)
        if lanes == wide and left < wide and self._are_long_runs(self.lane_loop, 2 * wide, narrow):
            return []  # most of a row runs in iterations of twice as many lanes
        sizes = [NUMBERS[run.array.dtype].size for run in runs]
        strides = [symbolic_dims.value_of(run.step) * size for run, size in zip(runs, sizes, strict=True)]
        are_far = any(self._bytes_now(loop, run.array) >= NOT_NEAR for run in runs)
        are_long = all(lanes * size >= least * CACHE_LINE_BYTES for size in sizes)
        return runs if are_far and are_long and not any(stride % CACHE_LINE_BYTES for stride in strides) else []

    def emit_sequential(
        self, block: Block, loop: int, limits: tuple[str, str], targets: list[NestTarget], body: Callable[[Block], None]
    ) -> None:
        """Emit a sequential loop; scalars that are loaded beside long runs come from a rotating vector.

        Scalar loads take issue slots in which L1 receives lines from L2: 1.92 us instead of 1.98 for four products
        with 64 kB each (Emerald Rapids).
        """
        numbers = self._numbers(block, loop, targets)
        if not numbers:
            self.emit_loop(block, LoopSpec(loop, *limits), body)
            return
        new, width = self.function.new, min(CACHE_LINE_BYTES // NUMBERS[array.dtype].size for array, _ in numbers)

        def chunk(inside: Block) -> None:
            remaining = new(inside, f"sub nsw i64 {limits[1]}, {inside.index}")
            is_less = new(inside, f"icmp slt i64 {remaining}, {width}")
            count = new(inside, f"select i1 {is_less}, i64 {remaining}, i64 {width}")
            last = new(inside, f"add nsw i64 {inside.index}, {count}")
            for array, index_map in numbers:
                _, pointer, _ = self.values.address(inside, array, index_map)
                here = new(inside, f"getelementptr {memory_type(array.dtype)}, ptr {pointer}, i64 {inside.index}")
                slot = self.function.variable(memory_type(array.dtype, width))
                aligned_loads.load_rotating(
                    self.function, inside, array.dtype, here, count, RotatingVector(slot, width)
                )
                inside.known["held", array.word] = RotatingVector(slot, width)
            self.emit_loop(inside, LoopSpec(loop, inside.index, last, enters=True), body)

        self.emit_loop(block, LoopSpec(None, *limits, width), chunk)

    def _numbers(self, block: Block, loop: int, targets: list[NestTarget]) -> list[tuple[StridedArray, IndexMap]]:
        """The arrays of scalars that are loaded beside runs with unit stride along the loop, by one access map.

        Extraction pays only beside runs of at least `MAX_ACCUMULATOR_VECTORS` vectors that are aligned.
        """
        runs = self._far_runs(block, loop, targets, MAX_ACCUMULATOR_VECTORS)
        if not runs or not all(run.begins_line for run in runs):
            return []
        result: dict[int, list[tuple[StridedArray, IndexMap, bool]]] = {}
        for node, index_map in self._read(targets):
            array = self.values.arrays[node]
            steps = self.values.coefficients(array.strides, index_map)[1]
            is_next = same(steps.get(loop, 0), 1) and self.lane_loop not in steps
            is_next = is_next and NUMBERS[array.dtype].memory in aligned_loads.PICKED
            result.setdefault(array.word, []).append((array, index_map, is_next))
        return [
            (array, index_map) for ((array, index_map, is_next), *others) in result.values() if is_next and not others
        ]

    def prefetch_runs(self, block: Block, loop: int, targets: list[NestTarget]) -> None:
        """Prefetch runs of later iterations.

        Hardware prefetchers follow adjacent lines, not runs with a large stride. Data in L2 needs no prefetch: a
        heuristic from the traced call's sizes.
        """
        new = self.function.new
        for run in self._vector_runs(loop, targets):
            if self._bytes_now(loop, run.array) < MIN_BEYOND_L2_BYTES:
                continue
            size = NUMBERS[run.array.dtype].size
            _, pointer, _ = self.values.address(block, run.array, run.access_map)
            ahead = self.function.extent(run.step * (RUNS_AHEAD * size))
            ahead = new(block, f"getelementptr i8, ptr {pointer}, i64 {ahead}")
            for line in range(self.values.lanes(block) * size // CACHE_LINE_BYTES):
                line_address = new(block, f"getelementptr i8, ptr {ahead}, i64 {line * CACHE_LINE_BYTES}")
                self.prefetch(block, line_address, "i32 0, i32 3")
