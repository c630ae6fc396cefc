"""Where the first true element is, or the first false one: lanes are bits of a number, whose lowest one is found.

To keep an index for each lane takes eight times as long, as a bool is an eighth of a number that counts.
"""

from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Register, llvm_type
from jitkernels.graph.emit.conversions import converted, splat
from jitkernels.graph.emit.reductions import LAST, Accumulator


@dataclass
class FirstFound(Accumulator):
    """``argmax`` or ``argmin`` of bools that are the lanes of a loop: the index of the first one that is found."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.index = self.values.function.variable(llvm_type(self.index_dtype))
        self.found = ""

    def begin(self, block: Block) -> None:
        self._note(block, self._last(1))

    def take(self, block: Block, value: Register, mask: str, index: str) -> None:
        function, kind = self.values.function, llvm_type(self.index_dtype)
        new = function.new
        wanted = self._wanted(block, value, mask)
        word = new(block, f"bitcast <{self.lanes} x i1> {wanted} to i{self.lanes}")
        some = new(block, f"icmp ne i{self.lanes} {word}, 0")
        inside = Block(block, -1)
        first = new(inside, f"extractelement <{self.lanes} x {kind}> {index}, i64 0")
        at = Register(self._lowest(inside, wanted, 1), "int32")
        there = new(inside, f"add {kind} {first}, {converted(function, inside, at, self.index_dtype).text}")
        self._note_first(inside, there)
        found, after = function.label(), function.label()
        block.lines += [f"  br i1 {some}, label %{found}, label %{after}, !prof !8", f"{found}:"]
        block.lines += [*inside.lines, f"  br label %{after}", f"{after}:"]

    def take_only(self, block: Block, value: Register, mask: str, index: str) -> None:  # noqa: ARG002
        self.is_row = True
        self.found = self._wanted(block, value, mask)

    def give(self, block: Block, other: Accumulator) -> None:
        if isinstance(other, FirstFound):
            self._give_first(block, other)
            return
        new, lanes = self.values.function.new, other.lanes
        kind, nothing = llvm_type(self.index_dtype, lanes), self._last(lanes)
        if self.is_row:
            index = self._lowest(block, self.found, lanes)
        else:
            index = self._noted(block)
            if lanes > 1:
                number = llvm_type(self.index_dtype)
                index = new(block, f"insertelement {kind} {nothing}, {number} {index}, i64 0")
        value = new(block, f"icmp {'eq' if self.kind == 'argmin' else 'ne'} {kind} {index}, {nothing}")
        self._give_index(block, other, Register(value, "bool", lanes), index)

    def _give_first(self, block: Block, other: "FirstFound") -> None:
        """Let another one have what was found in a part, whose elements come behind all that it has taken."""
        function = self.values.function
        index, kind = self._noted(block), llvm_type(self.index_dtype)
        none = function.new(block, f"icmp eq {kind} {index}, {self._last(1)}")
        long = converted(function, block, Register(index, self.index_dtype), other.index_dtype).text
        kind = llvm_type(other.index_dtype)
        there = function.new(block, f"add {kind} {long}, {self.first}")
        other._note_first(
            block, function.new(block, f"select i1 {none}, {kind} {other._last(1)}, {kind} {there}")
        )

    def decided(self, block: Block) -> str:
        kind = llvm_type(self.index_dtype)
        return self.values.function.new(block, f"icmp ne {kind} {self._noted(block)}, {self._last(1)}")

    def _noted(self, block: Block) -> str:
        return self.values.function.new(block, f"load {llvm_type(self.index_dtype)}, ptr {self.index}")

    def _note(self, block: Block, index: str) -> None:
        block.lines.append(f"  store {llvm_type(self.index_dtype)} {index}, ptr {self.index}")

    def _note_first(self, block: Block, index: str) -> None:
        """Note an index, unless an earlier one is noted."""
        new, kind = self.values.function.new, llvm_type(self.index_dtype)
        old = self._noted(block)
        earlier = new(block, f"icmp slt {kind} {index}, {old}")
        self._note(block, new(block, f"select i1 {earlier}, {kind} {index}, {kind} {old}"))

    def _wanted(self, block: Block, value: Register, mask: str) -> str:
        """The lanes that are on and what is looked for."""
        new, kind = self.values.function.new, llvm_type("bool", self.lanes)
        found = value.text
        if self.kind == "argmin":
            found = new(block, f"xor {kind} {found}, {splat('true', 'i1', self.lanes)}")
        return new(block, f"and {kind} {found}, {mask}") if mask else found

    def _lowest(self, block: Block, wanted: str, rows: int) -> str:
        """The first lane of each row that is wanted, as a number of 32 bits; the index of nothing if none is."""
        function, bits = self.values.function, self.lanes // rows
        new = function.new
        number, short = (f"<{rows} x i{bits}>", f"<{rows} x i32>") if rows > 1 else (f"i{bits}", "i32")
        name = f"llvm.cttz.{f'v{rows}' if rows > 1 else ''}i{bits}"
        function.library.declare(name, number, [number, "i1"])
        word = new(block, f"bitcast <{self.lanes} x i1> {wanted} to {number}")
        found = new(block, f"call {number} @{name}({number} {word}, i1 false)")
        if bits != 32:
            found = new(block, f"{'trunc' if bits > 32 else 'zext'} {number} {found} to {short}")
        none = new(block, f"icmp eq {number} {word}, {splat('0', f'i{bits}', rows)}")
        several, last = f"<{rows} x i1>" if rows > 1 else "i1", splat(str(LAST["int32"]), "i32", rows)
        return new(block, f"select {several} {none}, {short} {last}, {short} {found}")
