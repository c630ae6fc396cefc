"""Accumulators of reductions: initialize, accumulate an element per lane, and combine the lanes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast, splat
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type, suffix
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.codegen.nest.value_emitter import ValueEmitter
from jitkernels.compiler.transforms.reduction_identity import COMBINING, identity

LAST = {"int8": (1 << 8) - 1, "int16": (1 << 16) - 1, "int32": (1 << 31) - 1, "int64": (1 << 63) - 1}
"""The index of an accumulator that has taken no element."""
EXTREMES = frozenset({"min", "max", "argmin", "argmax"})
MIN_BYTE_LANES = 16
"""Bools that fill a vector register as bytes."""


@dataclass
class Accumulator:
    """One reduction in some lanes: allocas for its value, its index, and the compensation of its sum.

    Sums of floats are blocked: a part is `ADDS` elements in each lane, a group `PARTS` parts. Groups are combined by
    Knuth's two-sum, which keeps what addition rounds away: the error is that of one group, however many there are.

    `has_single_group`: so few parts that they need no total. Indices of parts are 32-bit offsets from `first`.
    """

    values: ValueEmitter
    kind: str
    dtype: str
    lanes: int
    is_long: bool = False
    is_row: bool = False
    has_single_group: bool = False
    index_dtype: str = "int64"
    first: str = "0"
    has_elements: bool = False

    def __post_init__(self) -> None:
        function = self.values.function
        self.is_index = self.kind in ("argmin", "argmax")
        self.in_parts = self.is_long and self.kind == "sum" and NUMBERS[self.dtype].kind == "float"
        self.has_parts = self.in_parts or self.is_index and self.is_long
        # Sums of half-precision numbers are single, as NumPy's are within a row.
        self.inner = "float32" if self.dtype == "float16" else self.dtype
        # Vectors of single bits fit no register without mask registers: LLVM takes them apart.
        self.in_bytes = self.kind in ("any", "all") and self.inner == "bool" and self.lanes >= MIN_BYTE_LANES
        kind = llvm_type("int8" if self.in_bytes else self.inner, self.lanes)
        self.total = function.variable(kind)
        self.index = function.variable(llvm_type(self.index_dtype, self.lanes)) if self.is_index else ""
        self.part = function.variable(kind) if self.in_parts else self.total
        self.group = function.variable(kind) if self.in_parts else ""
        self.compensation = function.variable(kind) if self.in_parts else ""

    def begin(self, block: Block) -> None:
        """Store the identity of the reduction."""
        self._store(block, self.part, self._first())
        if self.is_index:
            kind = llvm_type(self.index_dtype, self.lanes)
            block.lines.append(f"  store {kind} {self._last()}, ptr {self.index}")
        if self.in_parts:
            for at in (self.group, *(() if self.has_single_group else (self.compensation, self.total))):
                self._store(block, at, self._first())

    def next_part(self, block: Block) -> None:
        """Add the part's sum to the group, and begin another part."""
        if self.in_parts:
            self._store(block, self.group, self._of_group(block))
            self._store(block, self.part, self._first())

    def next_group(self, block: Block) -> None:
        """Add the group to the total with compensation, and begin another group."""
        if not self.in_parts or self.has_single_group:
            return
        total, group, lost = (self._load(block, at) for at in (self.total, self.group, self.compensation))

        def new(instruction: str, left: str, right: str) -> str:
            kind = llvm_type(self.inner, self.lanes)
            return self.values.function.new(block, f"{instruction} {kind} {left}, {right}")

        summed = new("fadd", total, group)
        rounded_group = new("fsub", summed, total)
        rounded_total = new("fsub", summed, rounded_group)
        error = new("fadd", new("fsub", total, rounded_total), new("fsub", group, rounded_group))
        self._store(block, self.total, summed)
        self._store(block, self.compensation, new("fadd", lost, error))
        self._store(block, self.group, self._first())

    def _of_group(self, block: Block) -> str:
        """The sum of the group with its current part."""
        part, group = self._load(block, self.part), self._load(block, self.group)
        return self.values.function.new(block, f"fadd {llvm_type(self.inner, self.lanes)} {group}, {part}")

    def fold_parts(self, block: Block) -> None:
        """Fold all parts into the current one; nothing to do where there was only one."""
        if self.in_parts:
            self._store(block, self.part, self._whole(block))
            self.in_parts = False

    def accumulate_element(self, block: Block, value: Register, mask: str, index: str) -> None:
        """Accumulate an element in every active lane."""
        value = emit_cast(self.values.function, block, value, self.inner)
        is_extreme = self.kind in EXTREMES and NUMBERS[self.inner].kind == "float"
        if mask or not is_extreme or self.lanes * NUMBERS[self.inner].size < 128:
            self._accumulate(block, value, mask, index)
            return
        # Test the elements for NaN independently of the accumulator, so that iterations do not wait for one another.
        function, half = self.values.function, self.lanes // 2
        low, high = (self._half(block, value.text, self.inner, half, 1, i) for i in range(2))
        each = function.new(block, f"fcmp uno {llvm_type(self.inner, half)} {low}, {high}")
        some = function.new(
            block, f"icmp ne i{half} {function.new(block, f'bitcast <{half} x i1> {each} to i{half}')}, 0"
        )
        with_nan, plain = Block(block, -1), Block(block, -1)
        self._accumulate(with_nan, value, mask, index)
        self._accumulate(plain, value, mask, index, has_nan=False)
        nan, usual, after = (function.label() for _ in range(3))
        block.lines += [f"  br i1 {some}, label %{nan}, label %{usual}, !prof !8"]
        block.lines += [f"{nan}:", *with_nan.lines, f"  br label %{after}"]
        block.lines += [f"{usual}:", *plain.lines, f"  br label %{after}", f"{after}:"]

    def _accumulate(self, block: Block, value: Register, mask: str, index: str, *, has_nan: bool = True) -> None:
        """Accumulate; a NaN in the accumulator stays in any case."""
        if self.in_bytes:
            self._accumulate_bytes(block, value, mask)
            return
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        bit = llvm_type("bool", self.lanes)
        old = Register(self._load(block, self.part), self.inner, self.lanes)
        better = ""
        if not has_nan:
            sign = "lt" if self.kind.endswith("min") else "gt"
            better = function.new(block, f"fcmp o{sign} {kind} {value.text}, {old.text}")
        elif self.is_index:
            better = self._precedes(block, value.text, old.text)
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
            # The NaN test reads the element, not the accumulator: only the minimum itself is loop-carried.
            new = self.combined(block, value, old).text
            if mask:
                new = function.new(block, f"select {bit} {mask}, {kind} {new}, {kind} {old.text}")
        self._store(block, self.part, new)

    def _accumulate_bytes(self, block: Block, value: Register, mask: str) -> None:
        """Accumulate bools, each of which is a byte of ones or zeros."""
        new, bit, byte = self.values.function.new, llvm_type("bool", self.lanes), llvm_type("int8", self.lanes)
        text, is_any = value.text, self.kind == "any"
        if mask:
            off = splat("false" if is_any else "true", "i1", self.lanes)
            text = new(block, f"select {bit} {mask}, {bit} {text}, {bit} {off}")
        taken, old = new(block, f"sext {bit} {text} to {byte}"), new(block, f"load {byte}, ptr {self.part}")
        total = new(block, f"{'or' if is_any else 'and'} {byte} {old}, {taken}")
        block.lines.append(f"  store {byte} {total}, ptr {self.part}")

    def store_only(self, block: Block, value: Register, mask: str, index: str) -> None:
        """Store the only element of every active lane, and the identity in the others."""
        self.is_row = True
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        value = emit_cast(function, block, value, self.inner)
        on = f"select <{self.lanes} x i1> {mask}"
        text = function.new(block, f"{on}, {kind} {value.text}, {kind} {self._first()}")
        self._store(block, self.part, text)
        if self.is_index:
            kind = llvm_type(self.index_dtype, self.lanes)
            text = function.new(block, f"{on}, {kind} {index}, {kind} {self._last()}")
            block.lines.append(f"  store {kind} {text}, ptr {self.index}")

    def combined(self, block: Block, left: Register, right: Register, flags: str = "nsz") -> Register:
        """Combine two values of the accumulator."""
        if self.kind in ("min", "max") and NUMBERS[self.inner].kind == "float":
            # nsz: either zero may result, as in NumPy; respecting the sign takes twice as long.
            function, kind = self.values.function, llvm_type(left.dtype, left.lanes)
            name = f"llvm.{self.kind}imum.{suffix(llvm_type(left.dtype), left.lanes)}"
            function.library.declare(name, kind, [kind, kind])
            text = function.new(block, f"call {flags} {kind} @{name}({kind} {left.text}, {kind} {right.text})")
            return Register(text, left.dtype, left.lanes)
        return emit_elementwise(self.values.function, block, COMBINING[self.kind], [left, right], self.inner)

    def _precedes(self, block: Block, value: str, old: str) -> str:
        """Return whether a value precedes an old one, wherever they are; NaN precedes all numbers.

        Elements come in order, so the first of equals stays. An accumulator without an element holds the identity.
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

    def _precedes_by_index(self, block: Block, value: str, index: str, old: str, old_index: str) -> str:
        """Return whether a value precedes an old one: NaN first, then the smaller index of equals."""
        function, lanes = self.values.function, self.lanes
        bit = llvm_type("bool", lanes)
        new = partial(function.new, block)
        further, behind = self._precedes(block, value, old), self._precedes(block, old, value)
        equal = new(f"xor {bit} {new(f'or {bit} {further}, {behind}')}, {splat('true', 'i1', lanes)}")
        earlier = new(f"icmp slt {llvm_type(self.index_dtype, lanes)} {index}, {old_index}")
        first = new(f"and {bit} {equal}, {earlier}")
        return new(f"or {bit} {further}, {first}")

    def combine_into(self, block: Block, other: "Accumulator") -> None:
        """Accumulate this accumulator's lanes into one of fewer lanes.

        With `is_row`, every lane holds one element, and the lanes form as many rows as `other` has lanes.
        """
        function, lanes = self.values.function, other.lanes
        rows = lanes if self.is_row else 1
        width, value = self.lanes, Register(self._whole(block), self.inner, self.lanes)
        counts = self.index_dtype
        index = function.new(block, f"load {llvm_type(counts, width)}, ptr {self.index}") if self.is_index else ""
        # Test for NaN once, where vectors become scalars.
        tests_nan_once = lanes == rows and self.kind in ("min", "max") and NUMBERS[self.inner].kind == "float"
        all_lanes = value
        if self.kind in ("any", "all") and lanes == rows and width > lanes:
            value, width = self._of_bits(block, value, lanes), lanes
        while width > lanes:
            width //= 2
            low, high = (self._half(block, value.text, self.inner, width, rows, i) for i in range(2))
            if self.is_index:
                low_index, high_index = (self._half(block, index, counts, width, rows, i) for i in range(2))
                half = Accumulator(self.values, self.kind, self.dtype, width, index_dtype=counts)
                better = half._precedes_by_index(block, high, high_index, low, low_index)
                bit, kind = llvm_type("bool", width), llvm_type(self.inner, width)
                index_type = llvm_type(counts, width)
                index = function.new(
                    block, f"select {bit} {better}, {index_type} {high_index}, {index_type} {low_index}"
                )
                text = function.new(block, f"select {bit} {better}, {kind} {high}, {kind} {low}")
                value = Register(text, self.inner, width)
            else:
                halves = Register(low, self.inner, width), Register(high, self.inner, width)
                value = self.combined(block, *halves, "nnan nsz" if tests_nan_once else "nsz")
        if self.is_row and self.kind == "sum" and NUMBERS[self.inner].kind == "float":
            kind = llvm_type(self.inner, lanes)
            text = function.new(block, f"fadd {kind} {value.text}, {self._first(lanes)}")
            value = Register(text, self.inner, lanes)
        if self.is_index:
            self._combine_index(block, other, value, index)
            return
        other._store(block, other.part, value.text)
        if tests_nan_once:
            self._propagate_nan(block, all_lanes, other)

    def _of_bits(self, block: Block, value: Register, rows: int) -> Register:
        """Reduce the bools of each row: their lanes are the bits of an integer."""
        bits, new = value.lanes // rows, self.values.function.new
        number = f"<{rows} x i{bits}>" if rows > 1 else f"i{bits}"
        word = new(block, f"bitcast <{value.lanes} x i1> {value.text} to {number}")
        sign, limit = ("ne", "0") if self.kind == "any" else ("eq", "-1")
        result = new(block, f"icmp {sign} {number} {word}, {splat(limit, f'i{bits}', rows)}")
        return Register(result, "bool", rows)

    def _combine_index(self, block: Block, other: "Accumulator", value: Register, index: str) -> None:
        """Combine an index relative to this part; all elements of `other` come before it."""
        function, lanes = self.values.function, other.lanes
        kind, number, bit = (llvm_type(dtype, lanes) for dtype in (self.inner, "int64", "bool"))
        if self.index_dtype != other.index_dtype:
            none = function.new(block, f"icmp eq {llvm_type(self.index_dtype, lanes)} {index}, {self._last(lanes)}")
            number_ = emit_cast(function, block, Register(index, self.index_dtype, lanes), "int64")
            start = broadcast(function, block, Register(self.first, "int64"), lanes).text
            index = function.new(block, f"add nsw {number} {number_.text}, {start}")
            index = function.new(block, f"select {bit} {none}, {number} {other._last()}, {number} {index}")
        if other.has_elements:
            old = other._load(block, other.part)
            old_index = function.new(block, f"load {number}, ptr {other.index}")
            better = other._precedes(block, value.text, old)
            index = function.new(block, f"select {bit} {better}, {number} {index}, {number} {old_index}")
            text = function.new(block, f"select {bit} {better}, {kind} {value.text}, {kind} {old}")
            value = Register(text, self.inner, lanes)
        other._store(block, other.part, value.text)
        block.lines.append(f"  store {number} {index}, ptr {other.index}")

    def _propagate_nan(self, block: Block, value: Register, other: "Accumulator") -> None:
        """Set a row to NaN where any of its lanes is NaN."""
        function, rows, lanes, halves = self.values.function, other.lanes, value.lanes, [value.text] * 2
        if lanes >= 16 * rows:  # an unordered comparison of two halves tests both
            lanes //= 2
            halves = [self._half(block, value.text, self.inner, lanes, rows, i) for i in range(2)]
        each = function.new(block, f"fcmp uno {llvm_type(self.inner, lanes)} {', '.join(halves)}")
        bits = function.new(block, f"bitcast <{lanes} x i1> {each} to i{lanes}")
        has_nan = function.new(block, f"icmp ne i{lanes} {bits}, 0")
        nan_label, after = function.label(), function.label()
        block.lines += [f"  br i1 {has_nan}, label %{nan_label}, label %{after}, !prof !8", f"{nan_label}:"]
        kind, bit, part = llvm_type(self.inner, rows), llvm_type("bool", rows), lanes // rows
        number = f"<{rows} x i{part}>" if rows > 1 else f"i{part}"
        own = function.new(block, f"bitcast <{lanes} x i1> {each} to {number}")
        is_nan = function.new(block, f"icmp ne {number} {own}, {splat('0', f'i{part}', rows)}")
        nan = splat(constant(NUMBERS[self.inner], math.nan), llvm_type(self.inner), rows)
        old = other._load(block, other.part)
        text = function.new(block, f"select {bit} {is_nan}, {kind} {nan}, {kind} {old}")
        other._store(block, other.part, text)
        block.lines += [f"  br label %{after}", f"{after}:"]

    def _half(self, block: Block, text: str, dtype: str, width: int, rows: int, which: int) -> str:
        """Extract one half of every row of a vector that is twice as wide."""
        vector, part = llvm_type(dtype, 2 * width), width // rows
        first = [2 * part * row + part * which for row in range(rows)]
        if width == 1:
            return self.values.function.new(block, f"extractelement {vector} {text}, i64 {first[0]}")
        numbers = (start + i for start in first for i in range(part))
        return self.values.function.shuffle(block, llvm_type(dtype), 2 * width, text, "poison", numbers)

    def _whole(self, block: Block) -> str:
        """Return the value with all parts; for a sum also the compensation unless that is NaN."""
        if not self.in_parts:
            return self._load(block, self.part)
        last = self._of_group(block)
        if self.has_single_group:
            return last
        function, kind = self.values.function, llvm_type(self.inner, self.lanes)
        total, lost = self._load(block, self.total), self._load(block, self.compensation)
        some = function.new(block, f"fcmp one {kind} {lost}, {self._first()}")
        exact = function.new(block, f"fadd {kind} {total}, {lost}")
        sum_ = function.new(block, f"select {llvm_type('bool', self.lanes)} {some}, {kind} {exact}, {kind} {total}")
        return function.new(block, f"fadd {kind} {last}, {sum_}")

    @property
    def decides(self) -> bool:
        """Whether some element can decide the result, so that the reduction may end early."""
        return self.kind in ("any", "all") or (self.is_index and self.inner == "bool")

    def decided(self, block: Block) -> str:
        """Return whether such an element was taken in any lane."""
        new, wanted = self.values.function.new, self.kind in ("any", "argmax")
        text = self._load(block, self.part)
        if self.lanes > 1:
            text = new(block, f"bitcast <{self.lanes} x i1> {text} to i{self.lanes}")
        return new(block, f"icmp ne i{self.lanes} {text}, {0 if wanted else -1}")

    def partial(self, block: Block) -> list[Register]:
        """Return a lane's partial result for another accumulator: the value, and its index if it has one."""
        results = [Register(self._whole(block), self.inner)]
        if self.is_index:
            results.append(Register(self.values.function.new(block, f"load i64, ptr {self.index}"), "int64"))
        return results

    def result(self, block: Block) -> Register:
        function = self.values.function
        if self.is_index:
            kind, bit = llvm_type("int64", self.lanes), llvm_type("bool", self.lanes)
            index = function.new(block, f"load {kind}, ptr {self.index}")
            none = function.new(block, f"icmp eq {kind} {index}, {self._last()}")
            zero = splat("0", "i64", self.lanes)
            text = function.new(block, f"select {bit} {none}, {kind} {zero}, {kind} {index}")
            return Register(text, "int64", self.lanes)
        text = self._whole(block)
        return emit_cast(function, block, Register(text, self.inner, self.lanes), self.dtype)

    def _first(self, lanes: int = 0) -> str:
        """The identity, in all lanes."""
        return constant(NUMBERS[self.inner], identity(self.kind, self.inner), lanes or self.lanes)

    def _last(self, lanes: int = 0) -> str:
        return splat(str(LAST[self.index_dtype]), llvm_type(self.index_dtype), lanes or self.lanes)

    def _store(self, block: Block, at: str, text: str) -> None:
        if self.in_bytes:
            bit, byte = llvm_type("bool", self.lanes), llvm_type("int8", self.lanes)
            text = self.values.function.new(block, f"sext {bit} {text} to {byte}")
            block.lines.append(f"  store {byte} {text}, ptr {at}")
            return
        block.lines.append(f"  store {llvm_type(self.inner, self.lanes)} {text}, ptr {at}")

    def _load(self, block: Block, at: str) -> str:
        if self.in_bytes:
            byte = llvm_type("int8", self.lanes)
            text = self.values.function.new(block, f"load {byte}, ptr {at}")
            return self.values.function.new(block, f"icmp ne {byte} {text}, zeroinitializer")
        return self.values.function.new(block, f"load {llvm_type(self.inner, self.lanes)}, ptr {at}")


def all_decided(block: Block, accumulators: Sequence[Accumulator]) -> str:
    """Return whether the result of every accumulator is decided."""
    function = accumulators[0].values.function
    whole, *rest = [accumulator.decided(block) for accumulator in accumulators]
    for decided in rest:
        whole = function.new(block, f"and i1 {whole}, {decided}")
    return whole
