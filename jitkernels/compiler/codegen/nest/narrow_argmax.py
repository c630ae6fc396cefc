"""Where the extreme of narrow integers is: steps are counted, which are the same in all lanes, in as few bits."""

from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Register, llvm_type
from jitkernels.graph.emit.conversions import converted, spread
from jitkernels.graph.emit.reductions import LAST, Accumulator


@dataclass
class StepCounts(Accumulator):
    """What finds an extreme in a part of so many steps as numbers without a sign of its `index_dtype` count."""

    def longest(self) -> int:
        """Elements of the longest part."""
        return LAST[self.index_dtype] * self.lanes

    def step(self, block: Block, index: str) -> str:
        """The number of the step that begins with an element, in all lanes."""
        function = self.values.function
        apart = function.new(block, f"sub nsw i64 {index}, {self.first}")
        number = function.new(block, f"lshr i64 {apart}, {self.lanes.bit_length() - 1}")
        narrow = converted(function, block, Register(number, "int64"), self.index_dtype)
        return spread(function, block, narrow, self.lanes).text

    def give(self, block: Block, other: Accumulator) -> None:
        """Let another one go on, for which indices are those of elements."""
        found = Accumulator(
            self.values, self.kind, self.dtype, self.lanes, index_dtype="int32", first=self.first
        )
        function, lanes, counts = self.values.function, self.lanes, llvm_type(self.index_dtype, self.lanes)
        kind, new = llvm_type("int32", lanes), function.new
        steps = new(block, f"load {counts}, ptr {self.index}")
        none = new(block, f"icmp eq {counts} {steps}, {self._last()}")
        first = new(
            block, f"mul {kind} {new(block, f'zext {counts} {steps} to {kind}')}, splat (i32 {lanes})"
        )
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        index = new(block, f"add {kind} {first}, <{numbers}>")
        index = new(
            block, f"select {llvm_type('bool', lanes)} {none}, {kind} {found._last()}, {kind} {index}"
        )
        block.lines.append(f"  store {kind} {index}, ptr {found.index}")
        found._store(block, found.part, self._load(block, self.part))
        found.give(block, other)
