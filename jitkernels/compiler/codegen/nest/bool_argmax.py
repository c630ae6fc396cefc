"""``argmax`` and ``argmin`` of bools: the lanes are the bits of an integer, whose trailing zeros are counted.

An index per lane would take eight times as long, as an index is eight times as wide as a bool.
"""

from dataclasses import dataclass

from jitkernels.compiler.codegen.core.casts import emit_cast, splat
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type
from jitkernels.compiler.codegen.nest.accumulators import LAST, Accumulator


@dataclass
class BoolArgmax(Accumulator):
    """``argmax`` or ``argmin`` of bools in the lanes of a loop: the index of the first match."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.index = self.values.function.variable(llvm_type(self.index_dtype))
        self.matches = ""

    def begin(self, block: Block) -> None:
        self._note(block, self._last(1))

    def accumulate_element(self, block: Block, value: Register, mask: str, index: str) -> None:
        function, kind = self.values.function, llvm_type(self.index_dtype)
        new = function.new
        matches = self._wanted(block, value, mask)
        word = new(block, f"bitcast <{self.lanes} x i1> {matches} to i{self.lanes}")
        has_match = new(block, f"icmp ne i{self.lanes} {word}, 0")
        inside = Block(block, -1)
        first = new(inside, f"extractelement <{self.lanes} x {kind}> {index}, i64 0")
        lane = Register(self._lowest(inside, matches, 1), "int32")
        first_index = new(inside, f"add {kind} {first}, {emit_cast(function, inside, lane, self.index_dtype).text}")
        self._note_first(inside, first_index)
        match_label, after = function.label(), function.label()
        block.lines += [f"  br i1 {has_match}, label %{match_label}, label %{after}, !prof !8", f"{match_label}:"]
        block.lines += [*inside.lines, f"  br label %{after}", f"{after}:"]

    def store_only(self, block: Block, value: Register, mask: str, index: str) -> None:  # noqa: ARG002
        self.is_row = True
        self.matches = self._wanted(block, value, mask)

    def combine_into(self, block: Block, other: Accumulator) -> None:
        if isinstance(other, BoolArgmax):
            self._combine_first(block, other)
            return
        new, lanes = self.values.function.new, other.lanes
        kind, nothing = llvm_type(self.index_dtype, lanes), self._last(lanes)
        if self.is_row:
            index = self._lowest(block, self.matches, lanes)
        else:
            index = self._noted(block)
            if lanes > 1:
                number = llvm_type(self.index_dtype)
                index = new(block, f"insertelement {kind} {nothing}, {number} {index}, i64 0")
        value = new(block, f"icmp {'eq' if self.kind == 'argmin' else 'ne'} {kind} {index}, {nothing}")
        self._combine_index(block, other, Register(value, "bool", lanes), index)

    def _combine_first(self, block: Block, other: "BoolArgmax") -> None:
        """Combine a part's index into `other`; all elements of `other` come before the part."""
        function = self.values.function
        index, kind = self._noted(block), llvm_type(self.index_dtype)
        none = function.new(block, f"icmp eq {kind} {index}, {self._last(1)}")
        widened = emit_cast(function, block, Register(index, self.index_dtype), other.index_dtype).text
        kind = llvm_type(other.index_dtype)
        absolute = function.new(block, f"add {kind} {widened}, {self.first}")
        other._note_first(block, function.new(block, f"select i1 {none}, {kind} {other._last(1)}, {kind} {absolute}"))

    def decided(self, block: Block) -> str:
        kind = llvm_type(self.index_dtype)
        return self.values.function.new(block, f"icmp ne {kind} {self._noted(block)}, {self._last(1)}")

    def _noted(self, block: Block) -> str:
        return self.values.function.new(block, f"load {llvm_type(self.index_dtype)}, ptr {self.index}")

    def _note(self, block: Block, index: str) -> None:
        block.lines.append(f"  store {llvm_type(self.index_dtype)} {index}, ptr {self.index}")

    def _note_first(self, block: Block, index: str) -> None:
        """Store an index if it is less than the stored one."""
        new, kind = self.values.function.new, llvm_type(self.index_dtype)
        old = self._noted(block)
        earlier = new(block, f"icmp slt {kind} {index}, {old}")
        self._note(block, new(block, f"select i1 {earlier}, {kind} {index}, {kind} {old}"))

    def _wanted(self, block: Block, value: Register, mask: str) -> str:
        """The mask of active lanes that match."""
        new, kind = self.values.function.new, llvm_type("bool", self.lanes)
        result = value.text
        if self.kind == "argmin":
            result = new(block, f"xor {kind} {result}, {splat('true', 'i1', self.lanes)}")
        return new(block, f"and {kind} {result}, {mask}") if mask else result

    def _lowest(self, block: Block, matches: str, rows: int) -> str:
        """Return the first matching lane of each row as an i32; the index of nothing if none matches."""
        function, bits = self.values.function, self.lanes // rows
        new = function.new
        number, short = (f"<{rows} x i{bits}>", f"<{rows} x i32>") if rows > 1 else (f"i{bits}", "i32")
        name = f"llvm.cttz.{f'v{rows}' if rows > 1 else ''}i{bits}"
        function.library.declare(name, number, [number, "i1"])
        word = new(block, f"bitcast <{self.lanes} x i1> {matches} to {number}")
        result = new(block, f"call {number} @{name}({number} {word}, i1 false)")
        if bits != 32:
            result = new(block, f"{'trunc' if bits > 32 else 'zext'} {number} {result} to {short}")
        none = new(block, f"icmp eq {number} {word}, {splat('0', f'i{bits}', rows)}")
        mask_type, nothing = f"<{rows} x i1>" if rows > 1 else "i1", splat(str(LAST["int32"]), "i32", rows)
        return new(block, f"select {mask_type} {none}, {short} {nothing}, {short} {result}")
