"""Numbers and elements of loops and branches in printed Python: variables, and elements of flat arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.codegen.python.simd_library import Library
from jitkernels.compiler.codegen.control_flow.scalar_emitter import OF_LLVM
from jitkernels.compiler.codegen.control_flow.signal_polls import FULL, REFUSED
from jitkernels.compiler.codegen.core.ir_builder import Block, Function, Register
from jitkernels.compiler.codegen.numba.nest_printer import INDENT
from jitkernels.compiler.codegen.numba.python_expressions import constant_text, enclosed, extent_text
from jitkernels.compiler.codegen.numba.spelling import Spelling
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import Array
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same, symbols_of
from jitkernels.core.frozen_dataclass import record


@record
class Scalar:
    """A number: a variable or a literal, and its dtype."""

    text: str
    dtype: str


@record
class Place:
    """An array: the variable of its pointer, strides in elements, and its dtype."""

    text: str
    strides: tuple[Number, ...]
    dtype: str


@dataclass
class NumberPrinter:
    """Prints statements that compute numbers. `places`: the frame's words of symbols; `moving`: those of loops."""

    arrays: Mapping[int, Array]
    places: dict[str, int]
    moving: Any
    flow: Flow
    name: str
    library: Library
    spelling: Spelling = field(init=False)
    block: Block = field(init=False)

    def __post_init__(self) -> None:
        self.spelling = Spelling(Library(alone=self.library.alone))
        self.block = Block()
        self.pointers: dict[int, str] = {}
        self.dtypes: dict[str, str] = {}
        self.symbols: set[str] = set()
        self.scratch: list[tuple[str, str]] = []
        self.shared: set[str] = set()
        self.near: set[str] = set()
        self.count = 0

    def _pointer(self, word: int, dtype: str) -> str:
        name = self.pointers.setdefault(word, f"a{word}")
        self.dtypes.setdefault(name, dtype)
        return name

    def extent(self, extent: Number) -> str:
        if isinstance(extent, Extent):
            self.symbols |= symbols_of(extent)
        return extent_text(extent)

    def variable(self, text: str, stem: str = "v") -> str:
        """A new variable, set here."""
        self.count += 1
        self.block.lines.append(f"{stem}{self.count} = {text}")
        return f"{stem}{self.count}"

    def _given(self, node: Node) -> Any:
        if node.operation in ("constant", "extent"):
            return self._number(node)
        array = self.arrays[id(node)]
        pointer = self._pointer(array.word, array.dtype)
        if node.ndim:
            return Place(pointer, array.strides, node.dtype)
        return Scalar(self.variable(self._read(f"{pointer}[0]", node.dtype)), node.dtype)

    def _number(self, node: Node) -> Scalar:
        """A constant, or an extent. Distances between such numbers fit in 64 bits: they are `near` one another."""
        if node.operation == "constant":
            found = Scalar(constant_text(node.options["value"], node.dtype), node.dtype)
        else:
            text = self.spelling.cast(self.extent(node.options["extent"]), "int64", node.dtype)
            found = self._named(text, node.dtype)
        self.near.add(found.text)
        return found

    @staticmethod
    def _read(text: str, dtype: str) -> str:
        return f"{text} != 0" if dtype == "bool" else text

    def _store(self, element: str, value: Scalar) -> None:
        text = f"uint8({value.text})" if value.dtype == "bool" else value.text
        self.block.lines.append(f"{element} = {text}")

    def _element(self, place: Place, indices: Sequence[Scalar]) -> str:
        parts = []
        for index, stride in zip(indices, place.strides, strict=True):
            parts.append(index.text if same(stride, 1) else f"{enclosed(index.text)} * {enclosed(self.extent(stride))}")
        return f"{place.text}[{' + '.join(parts) or '0'}]"

    def _refuse(self, condition: str, status: int = REFUSED) -> None:
        if condition != "False":
            self.block.lines += [f"if {condition}:", f"{INDENT}return {status}"]

    def _inside(self, head: str, before: Block, inside: Block) -> None:
        before.lines += [head, *(f"{INDENT}{line}" for line in inside.lines or ["pass"])]
        self.block = before

    def _named(self, text: str, dtype: str) -> Scalar:
        return Scalar(text if text.isidentifier() else self.variable(text), dtype)

    def _bounded(self, node: Node, index: Scalar) -> Scalar:
        """An index from 0 on; those that are beside the array end the call."""
        extent, text = self.extent(node.options["extent"]), index.text
        if node.options["counts_back"]:
            text = self.variable(f"{text} if {text} >= 0 else {text} + {enclosed(extent)}")
        status = FULL if "grows" in node.options else REFUSED
        self._refuse(f"{text} < 0 or {text} >= {enclosed(extent)}", status)
        return Scalar(text, "int64")

    def _overflows(self, of: str, one: Scalar, other: Scalar) -> str:
        """Whether 64 bits are too few for a result."""

        def code(function: Function, given: list[Register]) -> Register:
            name = f"llvm.s{OF_LLVM[of]}.with.overflow.i64"
            function.library.declare(name, "{ i64, i1 }", ["i64", "i64"])
            both = function.new(function.block, f"call {{ i64, i1 }} @{name}(i64 {given[0].text}, i64 {given[1].text})")
            return Register(function.new(function.block, f"extractvalue {{ i64, i1 }} {both}, 1"), "bool")

        return self.spelling.call(f"{of}_overflows", [one.text, other.text], ["int64", "int64"], "bool", code)
