"""``argmin`` and ``argmax`` of narrow integers: each lane stores the number of the iteration, in as few bits."""

from dataclasses import dataclass

from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type
from jitkernels.compiler.codegen.nest.accumulators import LAST, Accumulator


@dataclass
class NarrowArgmax(Accumulator):
    """Finds an extreme in a chunk; indices are iteration numbers, unsigned integers of `index_dtype`."""

    def longest(self) -> int:
        """The most elements of a chunk."""
        return LAST[self.index_dtype] * self.lanes

    def step(self, block: Block, index: str) -> str:
        """The number of the iteration that begins at an element, in all lanes."""
        function = self.values.function
        offset = function.new(block, f"sub nsw i64 {index}, {self.first}")
        number = function.new(block, f"lshr i64 {offset}, {self.lanes.bit_length() - 1}")
        narrow = emit_cast(function, block, Register(number, "int64"), self.index_dtype)
        return broadcast(function, block, narrow, self.lanes).text

    def combine_into(self, block: Block, other: Accumulator) -> None:
        """Accumulate into an accumulator whose indices are those of elements."""
        with_indices = Accumulator(
            self.values, self.kind, self.dtype, self.lanes, index_dtype="int32", first=self.first
        )
        function, lanes, counts = self.values.function, self.lanes, llvm_type(self.index_dtype, self.lanes)
        kind, new = llvm_type("int32", lanes), function.new
        steps = new(block, f"load {counts}, ptr {self.index}")
        none = new(block, f"icmp eq {counts} {steps}, {self._last()}")
        first = new(block, f"mul {kind} {new(block, f'zext {counts} {steps} to {kind}')}, splat (i32 {lanes})")
        numbers = ", ".join(f"i32 {lane}" for lane in range(lanes))
        index = new(block, f"add {kind} {first}, <{numbers}>")
        index = new(block, f"select {llvm_type('bool', lanes)} {none}, {kind} {with_indices._last()}, {kind} {index}")
        block.lines.append(f"  store {kind} {index}, ptr {with_indices.index}")
        with_indices._store(block, with_indices.part, self._load(block, self.part))
        with_indices.combine_into(block, other)
