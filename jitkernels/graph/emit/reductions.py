"""Accumulators of reductions: how they begin, take an element in every lane, and become one number."""

import math
from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Register, llvm_type, suffix
from jitkernels.graph.emit.conversions import converted, splat
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.values import Values
from jitkernels.native.language.types import NUMBERS, constant

LAST = (1 << 63) - 1


@dataclass
class Accumulator:
    """One reduction in some lanes: variables for its value, for the index of it, and for what sums lost.

    Sums of floats are added up in parts, each in as many accumulators as there are lanes; what joining the parts
    rounds away is kept beside (Knuth's two-sum), so that the error is that of one part, however many there are.
    """

    values: Values
    kind: str
    dtype: str
    lanes: int
    is_long: bool = False

    def __post_init__(self) -> None:
        function = self.values.function
        self.is_index = self.kind in ("argmin", "argmax")
        self.in_parts = self.is_long and self.kind == "sum" and NUMBERS[self.dtype].kind == "float"
        # Sums of half-precision numbers are single, as NumPy's are within a row.
        self.inner = "float32" if self.dtype == "float16" else self.dtype
        kind = llvm_type(self.inner, self.lanes)
        self.place = function.variable(kind)
        self.index = (
            function.variable(f"<{self.lanes} x i64>" if self.lanes > 1 else "i64") if self.is_index else ""
        )
        self.part = function.variable(kind) if self.in_parts else self.place
        self.lost = function.variable(kind) if self.in_parts else ""

    def begin(self, block: Block) -> None:
        """What nothing at all reduces to."""
        self._store(block, self.part, self._first())
        if self.is_index:
            kind = llvm_type("int64", self.lanes)
            block.lines.append(f"  store {kind} {splat(str(LAST), 'i64', self.lanes)}, ptr {self.index}")
        if self.in_parts:
            zero = splat(constant(NUMBERS[self.inner], 0.0), llvm_type(self.inner), self.lanes)
            self._store(block, self.lost, zero)
            self._store(block, self.place, zero)

    def next_part(self, block: Block) -> None:
        """Join what was added up so far to the whole, and begin another part."""
        if not self.in_parts:
            return
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        total, part, lost = (self._load(block, at) for at in (self.place, self.part, self.lost))

        def new(instruction: str, one: str, other: str) -> str:
            return function.new(block, f"{instruction} {kind} {one}, {other}")

        whole = new("fadd", total, part)
        added = new("fsub", whole, total)
        before = new("fsub", whole, added)
        error = new("fadd", new("fsub", total, before), new("fsub", part, added))
        self._store(block, self.place, whole)
        self._store(block, self.lost, new("fadd", lost, error))
        self._store(block, self.part, self._first())

    def take(self, block: Block, value: Register, mask: str, index: str) -> None:
        """One more element in every lane that is on."""
        function = self.values.function
        value = converted(function, block, value, self.inner)
        old = Register(self._load(block, self.part), self.inner, self.lanes)
        if self.is_index:
            kind = llvm_type("int64", self.lanes)
            old_index = function.new(block, f"load {kind}, ptr {self.index}")
            better = self._further(block, value.text, old.text)
            if mask:
                better = function.new(block, f"and <{self.lanes} x i1> {better}, {mask}")
            bit = llvm_type("bool", self.lanes)
            chosen = function.new(block, f"select {bit} {better}, {kind} {index}, {kind} {old_index}")
            block.lines.append(f"  store {kind} {chosen}, ptr {self.index}")
            kind = llvm_type(self.inner, self.lanes)
            new = function.new(block, f"select {bit} {better}, {kind} {value.text}, {kind} {old.text}")
            self._store(block, self.part, new)
            return
        # Of an element that is NaN or not, not of the accumulator: steps wait for one another by that alone.
        new = self.joined(block, value, old).text
        if mask:
            kind = llvm_type(self.inner, self.lanes)
            new = function.new(block, f"select <{self.lanes} x i1> {mask}, {kind} {new}, {kind} {old.text}")
        self._store(block, self.part, new)

    def joined(self, block: Block, one: Register, other: Register) -> Register:
        """Two values of the accumulator as one."""
        if self.kind in ("min", "max") and NUMBERS[self.inner].kind == "float":
            # Which of two zeros is given is not said, as it is not by NumPy; without that it takes twice as long.
            function, kind = self.values.function, llvm_type(one.dtype, one.lanes)
            name = f"llvm.{self.kind}imum.{suffix(llvm_type(one.dtype), one.lanes)}"
            function.library.declare(name, kind, [kind, kind])
            text = function.new(block, f"call nsz {kind} @{name}({kind} {one.text}, {kind} {other.text})")
            return Register(text, one.dtype, one.lanes)
        name = {
            "sum": "add",
            "prod": "multiply",
            "min": "minimum",
            "max": "maximum",
            "any": "logical_or",
        }.get(self.kind, "logical_and")
        return applied(self.values.function, block, name, [one, other], self.inner)

    def _further(self, block: Block, value: str, old: str) -> str:
        """Whether a value is to be found before an old one wherever they are; NaN is, before all numbers.

        Elements come in order, so that of equal ones the first stays. Where none is found, all are the least there is.
        """
        function, kind, lanes = self.values.function, llvm_type(self.inner, self.lanes), self.lanes
        bit, sort = llvm_type("bool", lanes), NUMBERS[self.inner]
        sign = "lt" if self.kind == "argmin" else "gt"
        if sort.kind != "float":
            sign = ("s" if sort.is_signed and sort.kind == "int" else "u") + sign
            return function.new(block, f"icmp {sign} {kind} {value}, {old}")
        strange = function.new(block, f"fcmp uno {kind} {value}, {value}")
        known = function.new(block, f"fcmp ord {kind} {old}, {old}")
        found = function.new(block, f"and {bit} {strange}, {known}")
        beyond = function.new(block, f"fcmp o{sign} {kind} {value}, {old}")
        return function.new(block, f"or {bit} {beyond}, {found}")

    def _better(self, block: Block, value: str, index: str, old: str, old_index: str) -> str:
        """Whether a value is to be found before an old one: NaN first, and of equals the one that comes first."""
        function, lanes = self.values.function, self.lanes
        bit = llvm_type("bool", lanes)

        def new(expression: str) -> str:
            return function.new(block, expression)

        further, behind = self._further(block, value, old), self._further(block, old, value)
        equal = new(f"xor {bit} {new(f'or {bit} {further}, {behind}')}, {splat('true', 'i1', lanes)}")
        earlier = new(f"icmp slt {llvm_type('int64', lanes)} {index}, {old_index}")
        first = new(f"and {bit} {equal}, {earlier}")
        return new(f"or {bit} {further}, {first}")

    def give(self, block: Block, other: "Accumulator") -> None:
        """Let an accumulator of fewer lanes go on with what is in this one."""
        function, lanes = self.values.function, other.lanes
        width, value = self.lanes, Register(self._whole(block), self.inner, self.lanes)
        index = function.new(block, f"load <{width} x i64>, ptr {self.index}") if self.is_index else ""
        while width > lanes:
            width //= 2
            low, high = (self._half(block, value.text, self.inner, width, first) for first in (0, width))
            if self.is_index:
                one, two = (self._half(block, index, "int64", width, first) for first in (0, width))
                half = Accumulator(self.values, self.kind, self.dtype, width)
                better = half._better(block, high, two, low, one)
                bit, kind = llvm_type("bool", width), llvm_type(self.inner, width)
                places = llvm_type("int64", width)
                index = function.new(block, f"select {bit} {better}, {places} {two}, {places} {one}")
                text = function.new(block, f"select {bit} {better}, {kind} {high}, {kind} {low}")
                value = Register(text, self.inner, width)
            else:
                value = self.joined(
                    block, Register(low, self.inner, width), Register(high, self.inner, width)
                )
        other._store(block, other.part, value.text)
        if self.is_index:
            block.lines.append(f"  store {llvm_type('int64', lanes)} {index}, ptr {other.index}")

    def _half(self, block: Block, text: str, dtype: str, width: int, first: int) -> str:
        vector = llvm_type(dtype, 2 * width)
        if width == 1:
            return self.values.function.new(block, f"extractelement {vector} {text}, i64 {first}")
        numbers = ", ".join(f"i32 {first + i}" for i in range(width))
        return self.values.function.new(
            block, f"shufflevector {vector} {text}, {vector} poison, <{width} x i32> <{numbers}>"
        )

    def _whole(self, block: Block) -> str:
        """All that was taken: of a sum, its last part, those before it, and what these lost; infinities lose NaN."""
        last = self._load(block, self.part)
        if not self.in_parts:
            return last
        function, kind, bit = (
            self.values.function,
            llvm_type(self.inner, self.lanes),
            llvm_type("bool", self.lanes),
        )
        total, lost = self._load(block, self.place), self._load(block, self.lost)
        zero = splat(constant(NUMBERS[self.inner], 0.0), llvm_type(self.inner), self.lanes)
        some = function.new(block, f"fcmp one {kind} {lost}, {zero}")
        exact = function.new(block, f"fadd {kind} {total}, {lost}")
        settled = function.new(block, f"select {bit} {some}, {kind} {exact}, {kind} {total}")
        return function.new(block, f"fadd {kind} {last}, {settled}")

    def partial(self, block: Block) -> list[Register]:
        """What one lane came to, for another accumulator to take: the value, and its index if it has one."""
        found = [Register(self._whole(block), self.inner)]
        if self.is_index:
            found.append(Register(self.values.function.new(block, f"load i64, ptr {self.index}"), "int64"))
        return found

    def result(self, block: Block) -> Register:
        """What all elements are reduced to."""
        function = self.values.function
        if self.is_index:
            kind, bit = llvm_type("int64", self.lanes), llvm_type("bool", self.lanes)
            index = function.new(block, f"load {kind}, ptr {self.index}")
            none = function.new(block, f"icmp eq {kind} {index}, {splat(str(LAST), 'i64', self.lanes)}")
            zero = splat("0", "i64", self.lanes)
            text = function.new(block, f"select {bit} {none}, {kind} {zero}, {kind} {index}")
            return Register(text, "int64", self.lanes)
        text = self._whole(block)
        return converted(function, block, Register(text, self.inner, self.lanes), self.dtype)

    def _first(self) -> str:
        """What changes nothing; a sum of negative zeros is a positive one, as NumPy's is."""
        sort = NUMBERS[self.inner]
        if self.kind in ("sum", "prod"):
            number: float | int = {"sum": 0.0, "prod": 1}[self.kind]
        elif self.kind in ("any", "all"):
            number = self.kind == "all"
        else:
            least = self.kind in ("max", "argmax")
            if sort.kind == "float":
                number = -math.inf if least else math.inf
            elif sort.kind == "bool":
                number = not least
            else:
                bits = 8 * sort.size - sort.is_signed
                number = (-(1 << bits) if sort.is_signed else 0) if least else (1 << bits) - 1
        if sort.kind == "int":
            number = int(number)
        return splat(constant(sort, number), llvm_type(self.inner), self.lanes)

    def _store(self, block: Block, at: str, text: str) -> None:
        block.lines.append(f"  store {llvm_type(self.inner, self.lanes)} {text}, ptr {at}")

    def _load(self, block: Block, at: str) -> str:
        return self.values.function.new(block, f"load {llvm_type(self.inner, self.lanes)}, ptr {at}")
