"""Numbers and elements of loops and branches: registers, variables that LLVM puts there, and elements in memory."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import extents
from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type, memory_type
from jitkernels.graph.emit.conversions import converted
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.native.language.lanes import Library
from jitkernels.native.language.types import NUMBERS, constant
from jitkernels.records import record

OF_LLVM = {"add": "add", "subtract": "sub", "multiply": "mul"}


@record
class Place:
    """An array: the address of its first element, and strides in elements."""

    pointer: str
    strides: tuple[Number, ...]
    dtype: str


class FlowFunction(Function):
    """A function in which some symbols have another value in each round of a loop."""

    def __init__(self, library: Library, places: dict[str, int], moving: Container[str]) -> None:
        super().__init__(library, places)
        self.moving = moving
        self.now = self.block
        self.variables: dict[str, str] = {}

    def let(self, symbol: str, text: str) -> None:
        """Give a symbol its value of the round."""
        if symbol in self.moving:
            if symbol not in self.variables:
                self.variables[symbol] = self.variable("i64")
            self.now.lines.append(f"  store i64 {text}, ptr {self.variables[symbol]}")

    def extent(self, extent: Number) -> str:
        """An extent as an i64: of this round, where it moves."""
        if not extents.is_moving(extent):
            return super().extent(extent)
        before, self.block = self.block, Block(lines=self.now.lines)
        found = self._polynomial(extent)
        self.block = before
        return found

    def current(self, symbol: str) -> str:
        """The value that a symbol has in this round."""
        return self.new(self.now, f"load i64, ptr {self.variables[symbol]}")

    def _word(self, symbol: str) -> str:
        return self.current(symbol) if symbol in self.moving else super()._word(symbol)


@dataclass
class Elements:
    """Writes what computes numbers. `pointers`: by the words of the frame, the arguments that arrays are."""

    arrays: Mapping[int, Array]
    function: FlowFunction
    pointers: dict[int, str] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        self.block = self.function.now = Block(self.function.block)

    def _new(self, expression: str) -> str:
        return self.function.new(self.block, expression)

    def _pointer(self, word: int) -> str:
        return self.pointers.setdefault(word, f"%array{word}")

    def _given(self, node: Node) -> Any:
        """What a node from around the flow is."""
        if node.operation in ("constant", "extent"):
            return self._number(node)
        array = self.arrays[id(node)]
        pointer = self._pointer(array.word)
        return Place(pointer, array.strides, node.dtype) if node.ndim else self._loaded(pointer, node.dtype)

    def _number(self, node: Node) -> Register:
        if node.operation == "constant":
            return Register(constant(NUMBERS[node.dtype], node.options["value"]), node.dtype)
        text = self.function.extent(node.options["extent"])
        return converted(self.function, self.block, Register(text, "int64"), node.dtype)

    def _loaded(self, pointer: str, dtype: str) -> Register:
        text = self._new(f"load {memory_type(dtype)}, ptr {pointer}, align {NUMBERS[dtype].size}")
        return Register(self._new(f"icmp ne i8 {text}, 0") if dtype == "bool" else text, dtype)

    def _stored(self, pointer: str, value: Register) -> None:
        text = self._new(f"zext i1 {value.text} to i8") if value.dtype == "bool" else value.text
        kind, size = memory_type(value.dtype), NUMBERS[value.dtype].size
        self.block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")

    def _refuse(self, bit: Register, label: str = "refused") -> None:
        if bit.text == "false":
            return
        onwards = self.function.label()
        self.block.lines += [f"  br i1 {bit.text}, label %{label}, label %{onwards}, !prof !4", f"{onwards}:"]

    def _bounded(self, node: Node, index: Register) -> Register:
        """An index from 0 on; those that are beside the array are refused."""
        extent = self.function.extent(node.options["extent"])
        found = index.text
        if node.options["counts_back"]:
            behind = self._new(f"icmp slt i64 {index.text}, 0")
            moved = self._new(f"add i64 {index.text}, {extent}")
            found = self._new(f"select i1 {behind}, i64 {moved}, i64 {index.text}")
        beside = Register(self._new(f"icmp uge i64 {found}, {extent}"), "bool")
        self._refuse(beside, "full" if "grows" in node.options else "refused")
        return Register(found, "int64")

    def _overflows(self, of: str, one: Register, other: Register) -> Register:
        """Whether 64 bits are too few for a result, which LLVM computes but once."""
        name = f"llvm.s{OF_LLVM[of]}.with.overflow.i64"
        self.function.library.declare(name, "{ i64, i1 }", ["i64", "i64"])
        both = self._new(f"call {{ i64, i1 }} @{name}(i64 {one.text}, i64 {other.text})")
        return Register(self._new(f"extractvalue {{ i64, i1 }} {both}, 1"), "bool")

    def _element(self, place: Place, indices: Sequence[Register]) -> str:
        """The address of an element."""
        total = ""
        for index, stride in zip(indices, place.strides, strict=True):
            text = index.text
            if not same(stride, 1):
                text = self._new(f"mul nsw i64 {text}, {self.function.extent(stride)}")
            total = self._new(f"add nsw i64 {total}, {text}") if total else text
        return self._new(
            f"getelementptr inbounds {memory_type(place.dtype)}, ptr {place.pointer}, i64 {total}"
        )

    def _variable(self, value: Register) -> str:
        """The address of a variable that has a value."""
        at = self.function.variable(llvm_type(value.dtype))
        self._set(at, value)
        return at

    def _set(self, at: str, value: Register) -> None:
        self.block.lines.append(f"  store {llvm_type(value.dtype)} {value.text}, ptr {at}")

    def _get(self, at: str, dtype: str) -> Register:
        return Register(self._new(f"load {llvm_type(dtype)}, ptr {at}"), dtype)
