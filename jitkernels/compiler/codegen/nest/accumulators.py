"""Accumulators of reductions: how they begin, take an element in every lane, and become one number."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Register, llvm_type, suffix
from jitkernels.graph.emit.conversions import converted, splat, spread
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.values import Values
from jitkernels.native.language.types import NUMBERS, constant

LAST = {"int8": (1 << 8) - 1, "int16": (1 << 16) - 1, "int32": (1 << 31) - 1, "int64": (1 << 63) - 1}
"""The index of nothing."""
EXTREMES = frozenset({"min", "max", "argmin", "argmax"})


@dataclass
class Accumulator:
    """One reduction in some lanes: variables for its value, for the index of it, and for what sums lost.

    Sums of floats are added up in parts, each in as many accumulators as there are lanes; what joining the parts
    rounds away is kept beside (Knuth's two-sum), so that the error is that of one part, however many there are.

    Indices of parts are counted in 32 bits from a `first` one.
    """

    values: Values
    kind: str
    dtype: str
    lanes: int
    is_long: bool = False
    is_row: bool = False
    index_dtype: str = "int64"
    first: str = "0"
    has_taken: bool = False

    def __post_init__(self) -> None:
        function = self.values.function
        self.is_index = self.kind in ("argmin", "argmax")
        self.in_parts = self.is_long and self.kind == "sum" and NUMBERS[self.dtype].kind == "float"
        self.has_parts = self.in_parts or self.is_index and self.is_long
        # Sums of half-precision numbers are single, as NumPy's are within a row.
        self.inner = "float32" if self.dtype == "float16" else self.dtype
        kind = llvm_type(self.inner, self.lanes)
        self.place = function.variable(kind)
        self.index = function.variable(llvm_type(self.index_dtype, self.lanes)) if self.is_index else ""
        self.part = function.variable(kind) if self.in_parts else self.place
        self.lost = function.variable(kind) if self.in_parts else ""

    def begin(self, block: Block) -> None:
        """What nothing at all reduces to."""
        self._store(block, self.part, self._first())
        if self.is_index:
            kind = llvm_type(self.index_dtype, self.lanes)
            block.lines.append(f"  store {kind} {self._last()}, ptr {self.index}")
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

    def settle(self, block: Block) -> None:
        """Let the last part be the whole; where there was but one it is."""
        if self.in_parts:
            self._store(block, self.part, self._whole(block))
            self.in_parts = False

    def take(self, block: Block, value: Register, mask: str, index: str) -> None:
        """One more element in every lane that is on."""
        value = converted(self.values.function, block, value, self.inner)
        is_extreme = self.kind in EXTREMES and NUMBERS[self.inner].kind == "float"
        if mask or not is_extreme or self.lanes * NUMBERS[self.inner].size < 128:
            self._take(block, value, mask, index)
            return
        # Whether there is NaN at all is seen without waiting for the accumulator.
        function, half = self.values.function, self.lanes // 2
        low, high = (self._half(block, value.text, self.inner, half, 1, i) for i in range(2))
        each = function.new(block, f"fcmp uno {llvm_type(self.inner, half)} {low}, {high}")
        some = function.new(
            block, f"icmp ne i{half} {function.new(block, f'bitcast <{half} x i1> {each} to i{half}')}, 0"
        )
        odd, usual = Block(block, -1), Block(block, -1)
        self._take(odd, value, mask, index)
        self._take(usual, value, mask, index, has_nan=False)
        there, here, after = (function.label() for _ in range(3))
        block.lines += [f"  br i1 {some}, label %{there}, label %{here}, !prof !8", f"{there}:", *odd.lines]
        block.lines += [f"  br label %{after}", f"{here}:", *usual.lines, f"  br label %{after}", f"{after}:"]

    def _take(self, block: Block, value: Register, mask: str, index: str, *, has_nan: bool = True) -> None:
        """A NaN of the accumulator stays in any case."""
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        bit = llvm_type("bool", self.lanes)
        old = Register(self._load(block, self.part), self.inner, self.lanes)
        better = ""
        if not has_nan:
            sign = "lt" if self.kind.endswith("min") else "gt"
            better = function.new(block, f"fcmp o{sign} {kind} {value.text}, {old.text}")
        elif self.is_index:
            better = self._further(block, value.text, old.text)
        if better and mask:
            better = function.new(block, f"and {bit} {better}, {mask}")
        if self.is_index:
            counts = llvm_type(self.index_dtype, self.lanes)
            old_index = function.new(block, f"load {counts}, ptr {self.index}")
            chosen = function.new(block, f"select {bit} {better}, {counts} {index}, {counts} {old_index}")
            block.lines.append(f"  store {counts} {chosen}, ptr {self.index}")
        if better:
            new = function.new(block, f"select {bit} {better}, {kind} {value.text}, {kind} {old.text}")
        else:
            # Of an element that is NaN or not, not of the accumulator: steps wait for one another by that alone.
            new = self.joined(block, value, old).text
            if mask:
                new = function.new(block, f"select {bit} {mask}, {kind} {new}, {kind} {old.text}")
        self._store(block, self.part, new)

    def take_only(self, block: Block, value: Register, mask: str, index: str) -> None:
        """The one element of every lane that is on; the others have what changes nothing."""
        self.is_row = True
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        value = converted(function, block, value, self.inner)
        on = f"select <{self.lanes} x i1> {mask}"
        self._store(
            block, self.part, function.new(block, f"{on}, {kind} {value.text}, {kind} {self._first()}")
        )
        if self.is_index:
            kind = llvm_type(self.index_dtype, self.lanes)
            text = function.new(block, f"{on}, {kind} {index}, {kind} {self._last()}")
            block.lines.append(f"  store {kind} {text}, ptr {self.index}")

    def joined(self, block: Block, one: Register, other: Register, flags: str = "nsz") -> Register:
        """Two values of the accumulator as one."""
        if self.kind in ("min", "max") and NUMBERS[self.inner].kind == "float":
            # Which of two zeros is given is not said, as it is not by NumPy; without that it takes twice as long.
            function, kind = self.values.function, llvm_type(one.dtype, one.lanes)
            name = f"llvm.{self.kind}imum.{suffix(llvm_type(one.dtype), one.lanes)}"
            function.library.declare(name, kind, [kind, kind])
            text = function.new(block, f"call {flags} {kind} @{name}({kind} {one.text}, {kind} {other.text})")
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
        known = function.new(block, f"fcmp ord {kind} {old}, {old}")
        beyond = function.new(block, f"fcmp u{sign} {kind} {value}, {old}")
        return function.new(block, f"and {bit} {beyond}, {known}")

    def _better(self, block: Block, value: str, index: str, old: str, old_index: str) -> str:
        """Whether a value is to be found before an old one: NaN first, and of equals the one that comes first."""
        function, lanes = self.values.function, self.lanes
        bit = llvm_type("bool", lanes)

        def new(expression: str) -> str:
            return function.new(block, expression)

        further, behind = self._further(block, value, old), self._further(block, old, value)
        equal = new(f"xor {bit} {new(f'or {bit} {further}, {behind}')}, {splat('true', 'i1', lanes)}")
        earlier = new(f"icmp slt {llvm_type(self.index_dtype, lanes)} {index}, {old_index}")
        first = new(f"and {bit} {equal}, {earlier}")
        return new(f"or {bit} {further}, {first}")

    def give(self, block: Block, other: "Accumulator") -> None:
        """Let an accumulator of fewer lanes go on with what is in this one.

        If this one has the one element of each lane, the lanes are those of as many rows as the other one has lanes.
        """
        function, lanes = self.values.function, other.lanes
        rows = lanes if self.is_row else 1
        width, value = self.lanes, Register(self._whole(block), self.inner, self.lanes)
        counts = self.index_dtype
        index = (
            function.new(block, f"load {llvm_type(counts, width)}, ptr {self.index}") if self.is_index else ""
        )
        # NaN is looked for once, where vectors become numbers.
        apart = lanes == rows and self.kind in ("min", "max") and NUMBERS[self.inner].kind == "float"
        before = value
        if self.kind in ("any", "all") and lanes == rows and width > lanes:
            value, width = self._of_bits(block, value, lanes), lanes
        while width > lanes:
            width //= 2
            low, high = (self._half(block, value.text, self.inner, width, rows, i) for i in range(2))
            if self.is_index:
                one, two = (self._half(block, index, counts, width, rows, i) for i in range(2))
                half = Accumulator(self.values, self.kind, self.dtype, width, index_dtype=counts)
                better = half._better(block, high, two, low, one)
                bit, kind = llvm_type("bool", width), llvm_type(self.inner, width)
                places = llvm_type(counts, width)
                index = function.new(block, f"select {bit} {better}, {places} {two}, {places} {one}")
                text = function.new(block, f"select {bit} {better}, {kind} {high}, {kind} {low}")
                value = Register(text, self.inner, width)
            else:
                halves = Register(low, self.inner, width), Register(high, self.inner, width)
                value = self.joined(block, *halves, "nnan nsz" if apart else "nsz")
        if self.is_row and self.kind == "sum" and NUMBERS[self.inner].kind == "float":
            kind = llvm_type(self.inner, lanes)
            text = function.new(block, f"fadd {kind} {value.text}, {self._first(lanes)}")
            value = Register(text, self.inner, lanes)
        if self.is_index:
            self._give_index(block, other, value, index)
            return
        other._store(block, other.part, value.text)
        if apart:
            self._strange(block, before, other)

    def _of_bits(self, block: Block, value: Register, rows: int) -> Register:
        """Bools of so many rows as one for each: their lanes are the bits of a number."""
        bits, new = value.lanes // rows, self.values.function.new
        number = f"<{rows} x i{bits}>" if rows > 1 else f"i{bits}"
        word = new(block, f"bitcast <{value.lanes} x i1> {value.text} to {number}")
        sign, limit = ("ne", "0") if self.kind == "any" else ("eq", "-1")
        found = new(block, f"icmp {sign} {number} {word}, {splat(limit, f'i{bits}', rows)}")
        return Register(found, "bool", rows)

    def _give_index(self, block: Block, other: "Accumulator", value: Register, index: str) -> None:
        """An index is counted from the first element of this part; what the other one has comes before all of it."""
        function, lanes = self.values.function, other.lanes
        kind, number, bit = (llvm_type(one, lanes) for one in (self.inner, "int64", "bool"))
        if self.index_dtype != other.index_dtype:
            none = function.new(
                block, f"icmp eq {llvm_type(self.index_dtype, lanes)} {index}, {self._last(lanes)}"
            )
            register = converted(function, block, Register(index, self.index_dtype, lanes), "int64")
            start = spread(function, block, Register(self.first, "int64"), lanes).text
            index = function.new(block, f"add nsw {number} {register.text}, {start}")
            index = function.new(block, f"select {bit} {none}, {number} {other._last()}, {number} {index}")
        if other.has_taken:
            old = other._load(block, other.part)
            old_index = function.new(block, f"load {number}, ptr {other.index}")
            better = other._further(block, value.text, old)
            index = function.new(block, f"select {bit} {better}, {number} {index}, {number} {old_index}")
            value = Register(
                function.new(block, f"select {bit} {better}, {kind} {value.text}, {kind} {old}"),
                self.inner,
                lanes,
            )
        other._store(block, other.part, value.text)
        block.lines.append(f"  store {number} {index}, ptr {other.index}")

    def _strange(self, block: Block, value: Register, other: "Accumulator") -> None:
        """Where a lane of a vector is NaN, its row is."""
        function, rows, lanes, halves = self.values.function, other.lanes, value.lanes, [value.text] * 2
        if lanes >= 16 * rows:  # of two numbers it takes one comparison
            lanes //= 2
            halves = [self._half(block, value.text, self.inner, lanes, rows, i) for i in range(2)]
        each = function.new(block, f"fcmp uno {llvm_type(self.inner, lanes)} {', '.join(halves)}")
        bits = function.new(block, f"bitcast <{lanes} x i1> {each} to i{lanes}")
        some = function.new(block, f"icmp ne i{lanes} {bits}, 0")
        odd, after = function.label(), function.label()
        block.lines += [f"  br i1 {some}, label %{odd}, label %{after}, !prof !8", f"{odd}:"]
        kind, bit, part = llvm_type(self.inner, rows), llvm_type("bool", rows), lanes // rows
        number = f"<{rows} x i{part}>" if rows > 1 else f"i{part}"
        own = function.new(block, f"bitcast <{lanes} x i1> {each} to {number}")
        found = function.new(block, f"icmp ne {number} {own}, {splat('0', f'i{part}', rows)}")
        nan = splat(constant(NUMBERS[self.inner], math.nan), llvm_type(self.inner), rows)
        old = other._load(block, other.part)
        other._store(
            block, other.part, function.new(block, f"select {bit} {found}, {kind} {nan}, {kind} {old}")
        )
        block.lines += [f"  br label %{after}", f"{after}:"]

    def _half(self, block: Block, text: str, dtype: str, width: int, rows: int, which: int) -> str:
        """One of the halves of every row of a vector of twice a width."""
        vector, part = llvm_type(dtype, 2 * width), width // rows
        first = [2 * part * row + part * which for row in range(rows)]
        if width == 1:
            return self.values.function.new(block, f"extractelement {vector} {text}, i64 {first[0]}")
        numbers = ", ".join(f"i32 {start + i}" for start in first for i in range(part))
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

    @property
    def decides(self) -> bool:
        """Whether there may be an element that others change nothing of."""
        return self.kind in ("any", "all") or (self.is_index and self.inner == "bool")

    def decided(self, block: Block) -> str:
        """Whether that was taken in any lane."""
        new, wanted = self.values.function.new, self.kind in ("any", "argmax")
        text = self._load(block, self.part)
        if self.lanes > 1:
            text = new(block, f"bitcast <{self.lanes} x i1> {text} to i{self.lanes}")
        return new(block, f"icmp ne i{self.lanes} {text}, {0 if wanted else -1}")

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
            none = function.new(block, f"icmp eq {kind} {index}, {self._last()}")
            zero = splat("0", "i64", self.lanes)
            text = function.new(block, f"select {bit} {none}, {kind} {zero}, {kind} {index}")
            return Register(text, "int64", self.lanes)
        text = self._whole(block)
        return converted(function, block, Register(text, self.inner, self.lanes), self.dtype)

    def _first(self, lanes: int = 0) -> str:
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
        return splat(constant(sort, number), llvm_type(self.inner), lanes or self.lanes)

    def _last(self, lanes: int = 0) -> str:
        return splat(str(LAST[self.index_dtype]), llvm_type(self.index_dtype), lanes or self.lanes)

    def _store(self, block: Block, at: str, text: str) -> None:
        block.lines.append(f"  store {llvm_type(self.inner, self.lanes)} {text}, ptr {at}")

    def _load(self, block: Block, at: str) -> str:
        return self.values.function.new(block, f"load {llvm_type(self.inner, self.lanes)}, ptr {at}")


def all_decided(block: Block, accumulators: Sequence[Accumulator]) -> str:
    """Whether each of some accumulators has what no other element changes."""
    function = accumulators[0].values.function
    whole, *rest = [one.decided(block) for one in accumulators]
    for one in rest:
        whole = function.new(block, f"and i1 {whole}, {one}")
    return whole
