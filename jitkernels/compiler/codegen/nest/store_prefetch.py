"""Prefetch cache lines of outputs before they are stored to, where stores to other lines would wait for them.

A processor with in-order stores prefetches for a single stream of stores. With several streams each store waits for
its line, if that is not in L1.
"""

from collections.abc import Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.store_rules import prefetched_outputs
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

STORE_PREFETCH_DISTANCE = 8 * CACHE_LINE_BYTES
"""The prefetch distance in bytes: 128 to 2,048 do as well, in L1 and in L2."""


class StorePrefetch(LoopEmitter):
    """Prefetches lines of a nest's outputs."""

    def prefetch_stores(self, block: Block, targets: Sequence[NestTarget]) -> None:
        """Prefetch the next lines of several outputs with unit stride along lanes.

        Lines that are loaded are there anyway. Outputs that may be stored by streaming stores are prefetched where they
        are not.
        """
        if not self.schedule.prefetches_stores or self.values.mask(block):
            return
        if self.schedule.streamed and not block.streamed:
            return
        inside, new = Block(block, -1), self.function.new
        for target in prefetched_outputs(self.loops, targets, self.values.lanes(block)):
            _, pointer, _ = self.values.address(block, target.output, target.index_map)
            size = self.values.lanes(block) * NUMBERS[target.output.dtype].size
            for line in range(STORE_PREFETCH_DISTANCE, STORE_PREFETCH_DISTANCE + size, CACHE_LINE_BYTES):
                at = new(inside, f"getelementptr i8, ptr {pointer}, i64 {line}")
                self.prefetch(inside, at, "i32 1, i32 3")
        if not inside.lines or not block.streamed:
            block.lines += inside.lines
            return
        is_cached = new(self.function.block, f"xor i1 {block.streamed[1]}, true")
        self._emit_if(block, is_cached, inside.lines)
