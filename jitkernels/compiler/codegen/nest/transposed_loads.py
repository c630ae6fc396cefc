"""Transposed loads: what lanes would gather is loaded in whole vectors along a run, and transposed in registers.

A transpose has its innermost loop along the elements of the gathered array (`Loops.gathered_run`). As many of its
iterations as there are lanes need a square of elements: one vector for each lane, in place of one gather for each
iteration, which takes as many loads as it has lanes.
"""

from collections.abc import Callable

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, memory_type
from jitkernels.compiler.codegen.nest.loop_emitter import LoopSpec
from jitkernels.compiler.codegen.nest.run_loads import VectorRuns
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.strided_array import is_small_stride
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.nest_values import Pair
from jitkernels.compiler.schedule.nest.vector_runs import loads_once
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.gemm.packing import transpose_registers

TRANSPOSED_BYTES = 4, 8
"""Sizes of elements that are transposed in registers."""


@frozen_dataclass
class _Shuffles:
    """What `transpose_registers` writes with: shuffles of vectors of `lanes` elements of `align` bytes each."""

    function: FunctionBuilder
    block: Block
    kind: str
    lanes: int
    align: int

    def shuffle(self, left: str, right: str, picks: list[int]) -> str:
        return self.function.shuffle(self.block, self.kind, self.lanes, left, right, picks)


class TransposedLoads(VectorRuns):
    """Emits the innermost loops of transposes."""

    def emit_gathered_run(
        self, block: Block, loop: int, targets: list[NestTarget], step: Callable[[Block], None]
    ) -> None:
        """Emit the loop inside of the lane loop: as many iterations at once as there are lanes, and the others."""
        begin, end = self._limits(loop)
        lanes, new = self.values.lanes(block), self.function.new
        squares = self._squares(loop, targets) if lanes > 1 and not self.values.mask(block) else []
        if squares:
            count = new(block, f"sub nsw i64 {end}, {begin}")
            stop = new(block, f"add nsw i64 {begin}, {new(block, f'and i64 {count}, {-lanes}')}")

            def square(inside: Block) -> None:
                vectors = {
                    ("transposed", self.values.arrays[node].word): self._transposed(inside, loop, (node, index_map))
                    for node, index_map in squares
                }
                for i in range(lanes):
                    index = new(inside, f"add nsw i64 {inside.index}, {i}")
                    known = {key: columns[i] for key, columns in vectors.items()}
                    step(Block(block, loop, index, lines=inside.lines, known=known))

            self.emit_loop(block, LoopSpec(loop, begin, stop, lanes), square)
            begin = stop
        self.emit_loop(block, LoopSpec(loop, begin, end), step)

    def _squares(self, loop: int, targets: list[NestTarget]) -> list[Pair]:
        """The arrays that are gathered, each at one access map, and contiguous along a loop."""
        reads = loads_once(self.values, targets)
        words = [self.values.arrays[node].word for node, _ in reads]
        results = []
        for node, index_map in reads:
            array = self.values.arrays[node]
            steps = array.coefficients(index_map)[1]
            lane_step, step = steps.get(self.vector_loop, 0), steps.get(loop, 0)
            is_gathered = not same(lane_step, 0) and not is_small_stride(lane_step)
            is_number = array.dtype not in PLANES and NUMBERS[array.dtype].size in TRANSPOSED_BYTES
            if is_gathered and is_number and (same(step, 1) or same(step, -1)) and words.count(array.word) == 1:
                results.append((node, index_map))
        return results

    def _transposed(self, block: Block, loop: int, pair: Pair) -> list[str]:
        """Load a square of elements from one iteration on; its vectors of lanes, one for each iteration of the loop."""
        node, index_map = pair
        array, lanes, new = self.values.arrays[node], self.values.lanes(block), self.function.new
        steps = array.coefficients(index_map)[1]
        _, pointer, lane_step = self.values.address(block, array, index_map)
        kind, size = memory_type(array.dtype), NUMBERS[array.dtype].size
        is_reversed = not same(steps[loop], 1)
        if is_reversed:
            pointer = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {1 - lanes}")
        distance, rows = self.function.extent(lane_step), []
        for lane in range(lanes):
            offset = new(block, f"mul nsw i64 {distance}, {lane}")
            row = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {offset}")
            rows.append(new(block, f"load {memory_type(array.dtype, lanes)}, ptr {row}, align {size}"))
        columns = transpose_registers(_Shuffles(self.function, block, kind, lanes, size), rows)
        return columns[::-1] if is_reversed else columns
