"""Lines that are asked for before they are written to, where stores to other lines would wait for them.

A processor that writes in order fetches what comes next for a single run of stores. Of several that take turns each
store waits for its line, if that is not in the first cache.
"""

from collections.abc import Sequence

from jitkernels import machine
from jitkernels.graph.emit.blocks import Block
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import same
from jitkernels.native.language.types import NUMBERS

CALCULATING = 12
"""Additions for an element from which on it takes longer to compute it than to wait for its line."""
SOON = 8 * LINE
"""Bytes behind what is written now: 128 to 2,048 do as well, in the first cache and in the second."""


class ComingLines(LoopWriter):
    """Asks for lines of the results of a nest."""

    def ask_for_lines(self, block: Block, targets: Sequence[Target]) -> None:
        """Those that come soon of several results along which lanes lie; what is read is there anyway.

        What may go past the caches is asked for where it does not.
        """
        if not machine.target().waits_to_write or self.values.mask(block) or self.nest.cost >= CALCULATING:
            return
        if self.streamed and not block.streamed:
            return
        found = {one.array.word: one for one in targets if one.array is not None and self._is_run(block, one)}
        inside, new = Block(block, -1), self.function.new
        for word, target in found.items() if len(found) > 1 else ():
            assert target.array is not None, "a root's"
            if word in self.read_words:
                continue
            _, pointer, _ = self.values.address(block, target.array, target.place)
            size = self.values.lanes(block) * NUMBERS[target.array.dtype].size
            for line in range(SOON, SOON + size, LINE):
                at = new(inside, f"getelementptr i8, ptr {pointer}, i64 {line}")
                self.prefetch(inside, at, "i32 1, i32 3")
        if not inside.lines or not block.streamed:
            block.lines += inside.lines
            return
        stays = new(self.function.block, f"xor i1 {block.streamed[1]}, true")
        self._where(block, stays, inside.lines)

    def _is_run(self, block: Block, target: Target) -> bool:
        """Whether a step writes half a line at least of an array, one element behind another."""
        if target.array is None or target.node.operation == "placed" or self.lane_loop is None:
            return False
        steps = self.values.coefficients(target.array.strides, target.place)[1]
        size = self.values.lanes(block) * NUMBERS[target.array.dtype].size
        return same(steps.get(self.lane_loop, 0), 1) and size >= LINE // 2
