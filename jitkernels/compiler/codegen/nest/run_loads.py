"""Emission of vector runs: unaligned ones by whole cache lines, scalars beside them, and prefetches."""

from collections.abc import Callable

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core import aligned_loads
from jitkernels.compiler.codegen.core.aligned_loads import RotatingVector
from jitkernels.compiler.codegen.core.ir_builder import Block, memory_type
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter, LoopSpec
from jitkernels.compiler.schedule.nest.nest_schedule import PhaseSchedule
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.vector_runs import held_scalars, vector_runs
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

RUNS_AHEAD = 4
"""The prefetch distance of runs, in iterations."""


class VectorRuns(LoopEmitter):
    """Emits runs: aligned loads, rotating vectors, and prefetches. `phase`: the schedule of the current loops."""

    phase: PhaseSchedule

    def in_runs(self, block: Block, loops: list[int], targets: list[NestTarget], body: Callable[[Block], None]) -> None:
        """Emit `body` with aligned loads of runs, versioned at run time: if all runs have the same misalignment.

        They have it where their stride is a multiple of a cache line, as for rows of a power of two of elements.
        """
        if not self._reaches(block, self.phase.whole_lines):
            body(block)
            return
        runs = vector_runs(self.values, loops[0], self.lane_loop, targets)
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

    def emit_sequential(
        self, block: Block, loop: int, limits: tuple[str, str], targets: list[NestTarget], body: Callable[[Block], None]
    ) -> None:
        """Emit a sequential loop; scalars that are loaded beside long runs come from a rotating vector.

        Scalar loads take issue slots in which L1 receives lines from L2: 1.92 us instead of 1.98 for four products
        with 64 kB each (Emerald Rapids).
        """
        if not self._reaches(block, self.phase.held_scalars):
            self.emit_loop(block, LoopSpec(loop, *limits), body)
            return
        numbers = held_scalars(self.values, loop, self.lane_loop, targets)
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

    def _reaches(self, block: Block, lanes: int) -> bool:
        """Whether a block computes so many lanes, all of them; 0 is for never."""
        return 0 < lanes <= self.values.lanes(block) and not self.values.mask(block)

    def prefetch_runs(self, block: Block, loop: int, targets: list[NestTarget]) -> None:
        """Prefetch runs of later iterations."""
        new = self.function.new
        for run in vector_runs(self.values, loop, self.lane_loop, targets):
            if run.array.word not in self.phase.prefetched_runs:
                continue
            size = NUMBERS[run.array.dtype].size
            _, pointer, _ = self.values.address(block, run.array, run.access_map)
            ahead = self.function.extent(run.step * (RUNS_AHEAD * size))
            ahead = new(block, f"getelementptr i8, ptr {pointer}, i64 {ahead}")
            for line in range(self.values.lanes(block) * size // CACHE_LINE_BYTES):
                line_address = new(block, f"getelementptr i8, ptr {ahead}, i64 {line * CACHE_LINE_BYTES}")
                self.prefetch(block, line_address, "i32 0, i32 3")
