"""Functions of LLVM IR under construction: straight runs of instructions inside of loops, and what is known in each."""

import struct
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import extents
from jitkernels.graph.extents import Extent, Number
from jitkernels.native.language.lanes import Library
from jitkernels.native.language.types import NUMBERS
from jitkernels.records import record


@record
class Register:
    """A value: LLVM's text for it, its dtype, and in how many lanes it lies."""

    text: str
    dtype: str
    lanes: int = 1


@dataclass
class Block:
    """The inside of a loop, or of a function: its lines, and registers that hold in it and in the loops inside.

    `loop` is the loop's number, None for a function; `index` its count; `mask` says which lanes are on, if not all.
    `streamed`: the words of the arrays whose lines each step of the block writes whole, and whether past the caches.
    """

    around: "Block | None" = None
    loop: int | None = None
    index: str = ""
    lanes: int = 1
    mask: str = ""
    streamed: tuple[frozenset[int], str] | None = None
    lines: list[str] = field(default_factory=list)
    known: dict[Any, Any] = field(default_factory=dict)

    def find(self, key: Any) -> Any:
        """What is known by a key here or around; None if nothing is."""
        block: Block | None = self
        while block is not None:
            if key in block.known:
                return block.known[key]
            block = block.around
        return None

    def path(self) -> "list[Block]":
        """The blocks around, outermost first, and this one."""
        found: list[Block] = []
        block: Block | None = self
        while block is not None:
            found.append(block)
            block = block.around
        return found[::-1]

    def of(self, loops: "frozenset[int] | set[int]") -> "Block":
        """The outermost block in which all these loops run."""
        for block in reversed(self.path()):
            if block.loop is None or block.loop in loops:
                return block
        raise AssertionError("functions are no loops")


class Function:
    """One function: its names, its first block, and the library of scalar code that it calls."""

    def __init__(self, library: Library, places: dict[str, int]) -> None:
        """`places`: the word of the frame in which each symbol is."""
        self.library, self.places = library, places
        self.count = 0
        self.memory: list[str] = []
        self.block = Block()

    def name(self) -> str:
        self.count += 1
        return f"%r{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def new(self, block: Block, expression: str) -> str:
        """An instruction, and the name of its value."""
        name = self.name()
        block.lines.append(f"  {name} = {expression}")
        return name

    def variable(self, kind: str) -> str:
        """The address of a variable, which LLVM puts in a register."""
        name = self.name()
        self.memory.append(f"  {name} = alloca {kind}")
        return name

    def extent(self, extent: Number) -> str:
        """An extent as an i64, computed once at the start of the function."""
        if not isinstance(extent, Extent):
            return str(int(extent))
        key = "extent", extent.key
        found: str | None = self.block.known.get(key)
        if found is None:
            found = self._polynomial(extent)
            self.block.known[key] = found
        return found

    def extent_of(self, symbol: str) -> str:
        """The value of a symbol, read once at the start of the function."""
        return self._atom(extents.Atom(symbol))

    def _polynomial(self, extent: Extent) -> str:
        total = ""
        for monomial, count in extent.terms.items():
            factors = [self._atom(atom) for atom in monomial]
            if count != 1 or not factors:
                factors.insert(0, str(count))
            term = factors[0]
            for factor in factors[1:]:
                term = self.new(self.block, f"mul nsw i64 {term}, {factor}")
            total = self.new(self.block, f"add nsw i64 {total}, {term}") if total else term
        return total

    def _atom(self, atom: extents.Atom) -> str:
        key = "atom", atom.text
        if key not in self.block.known:
            self.block.known[key] = self._word(atom.text) if not atom.operation else self._opaque(atom)
        known: str = self.block.known[key]
        return known

    def _word(self, symbol: str) -> str:
        at = self.new(self.block, f"getelementptr i64, ptr %frame, i64 {self.places[symbol]}")
        return self.new(self.block, f"load i64, ptr {at}")

    def _opaque(self, atom: extents.Atom) -> str:
        if atom.operation == "scaled":
            bits = struct.pack(">d", atom.right).hex().upper()
            number = self.new(self.block, f"sitofp i64 {self.extent(atom.left)} to double")
            product = self.new(self.block, f"fmul double {number}, 0x{bits}")
            return self.new(self.block, f"fptosi double {product} to i64")
        left, right = self.extent(atom.left), self.extent(atom.right)
        if atom.operation in ("min", "max"):
            sign = "slt" if atom.operation == "min" else "sgt"
            less = self.new(self.block, f"icmp {sign} i64 {left}, {right}")
            return self.new(self.block, f"select i1 {less}, i64 {left}, i64 {right}")
        rest = self.new(self.block, f"srem i64 {left}, {right}")
        apart = self.new(self.block, f"xor i64 {rest}, {right}")
        negative = self.new(self.block, f"icmp slt i64 {apart}, 0")
        some = self.new(self.block, f"icmp ne i64 {rest}, 0")
        corrects = self.new(self.block, f"and i1 {negative}, {some}")
        if atom.operation == "mod":
            more = self.new(self.block, f"add i64 {rest}, {right}")
            return self.new(self.block, f"select i1 {corrects}, i64 {more}, i64 {rest}")
        quotient = self.new(self.block, f"sdiv i64 {left}, {right}")
        one = self.new(self.block, f"zext i1 {corrects} to i64")
        return self.new(self.block, f"sub i64 {quotient}, {one}")


def llvm_type(dtype: str, lanes: int = 1) -> str:
    """What a register of a dtype is."""
    kind = NUMBERS[dtype].llvm
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def memory_type(dtype: str, lanes: int = 1) -> str:
    """What elements of a dtype are in memory."""
    kind = NUMBERS[dtype].memory
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def suffix(kind: str, lanes: int) -> str:
    """The end of an intrinsic's name for a type of LLVM's."""
    short = {"half": "f16", "float": "f32", "double": "f64"}.get(kind, kind)
    return short if lanes == 1 else f"v{lanes}{short}"
