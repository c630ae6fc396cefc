"""A builder of LLVM IR functions: blocks of straight-line code nested in loops, and the values known in each."""

import itertools
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.core.frozen_dataclass import frozen_dataclass

PAIR = "<2 x "
"""What LLVM types of complex numbers begin with."""


@frozen_dataclass
class Register:
    """An SSA value: LLVM's text for it, its dtype, and its lanes."""

    text: str
    dtype: str
    lanes: int = 1


@dataclass
class Block:
    """The body of a loop or function: its lines, and values that are available in it and in the loops inside.

    `loop`: the loop's number, None for a function; `index`: its induction variable; `mask`: the active lanes, if not
    all. `streamed`: the frame words of the arrays that the block stores in whole cache lines, and the condition under
    which these are streaming stores.
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
        """Look up an available value in this block and the enclosing ones; None if there is none."""
        block: Block | None = self
        while block is not None:
            if key in block.known:
                return block.known[key]
            block = block.around
        return None

    def path(self) -> "list[Block]":
        """The enclosing blocks, outermost first, and this one."""
        results: list[Block] = []
        block: Block | None = self
        while block is not None:
            results.append(block)
            block = block.around
        return results[::-1]

    def of(self, loops: "frozenset[int] | set[int]") -> "Block":
        """The outermost block that is inside of all these loops."""
        for block in reversed(self.path()):
            if block.loop is None or block.loop in loops:
                return block
        raise AssertionError("functions are no loops")


@frozen_dataclass
class LaneMask:
    """The mask of a vector's active lanes, and the value of the others."""

    lanes: int
    text: str
    off: str = "zeroinitializer"


@frozen_dataclass
class Prefix:
    """What a mask says of a vector: its first `count` lanes are active, not all of them if it `is_partial`."""

    count: str
    lanes: int
    is_partial: bool = False


class FunctionBuilder:
    """A function under construction: its names, its entry block, and the library of scalar functions that it calls."""

    def __init__(self, library: Library, symbol_slots: dict[str, int]) -> None:
        """`symbol_slots`: the frame word of each symbol; `prefixes`: what is known of masks."""
        self.library, self.symbol_slots = library, symbol_slots
        self.prefixes: dict[str, Prefix] = {}
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
        """Append an instruction; return the name of its value."""
        name = self.name()
        block.lines.append(f"  {name} = {expression}")
        return name

    def slot(self, block: Block, index: int | str, base: str = "%frame") -> str:
        """Return the address of a word of a frame, or of another table of words."""
        return self.new(block, f"getelementptr i64, ptr {base}, i64 {index}")

    def load_slot(self, block: Block, index: int, kind: str = "i64", base: str = "%frame") -> str:
        """Load a word of a frame as an i64, or as an address."""
        return self.new(block, f"load {kind}, ptr {self.slot(block, index, base)}")

    def splat(self, block: Block, kind: str, lanes: int, text: str) -> str:
        """Broadcast a scalar register to a vector."""
        vector = f"<{lanes} x {kind}>"
        first = self.new(block, f"insertelement {vector} poison, {kind} {text}, i64 0")
        return self.new(block, f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def shuffle(self, block: Block, kind: str, lanes: int, left: str, right: str, numbers: Iterable[int | str]) -> str:
        """Pick elements of two vectors of `lanes` lanes by their numbers, or "poison"; pairs of complex numbers."""
        if kind.startswith(PAIR):
            pairs = [(n, n) if isinstance(n, str) else (2 * n, 2 * n + 1) for n in numbers]
            return self.shuffle(
                block, kind[len(PAIR) : -1], 2 * lanes, left, right, itertools.chain.from_iterable(pairs)
            )
        order = [f"i32 {number}" for number in numbers]
        vector, picks = f"<{lanes} x {kind}>", f"<{len(order)} x i32> <{', '.join(order)}>"
        return self.new(block, f"shufflevector {vector} {left}, {vector} {right}, {picks}")

    def masked_load(self, block: Block, kind: str, pointer: str, align: int, mask: "LaneMask") -> str:
        """Load the active lanes of a vector."""
        vector, bits = f"<{mask.lanes} x {kind}>", f"<{mask.lanes} x i1>"
        name = f"llvm.masked.load.{suffix(kind, mask.lanes)}.p0"
        self.library.declare(name, vector, ["ptr", bits, vector])
        arguments = f"ptr align {align} {pointer}, {bits} {mask.text}, {vector} {mask.off}"
        return self.new(block, f"call {vector} @{name}({arguments})")

    def variable(self, kind: str) -> str:
        """Return the address of an alloca, which LLVM promotes to a register."""
        name = self.name()
        self.memory.append(f"  {name} = alloca {kind}")
        return name

    def array_pointer(self, array: StridedArray) -> str:
        """Return the address of an array's first element, at the begin of the function."""
        pointer = self.load_slot(self.block, array.word, "ptr")
        if same(array.first, 0):
            return pointer
        kind = memory_type(array.dtype)
        return self.new(self.block, f"getelementptr {kind}, ptr {pointer}, i64 {self.extent(array.first)}")

    def extent(self, extent: Number) -> str:
        """Return an extent as an i64, computed once at function entry."""
        if not isinstance(extent, Extent):
            return str(int(extent))
        key = "extent", extent.key
        result: str | None = self.block.known.get(key)
        if result is None:
            result = self._polynomial(extent)
            self.block.known[key] = result
        return result

    def extent_of(self, symbol: str) -> str:
        """Return a symbol's value, loaded once at function entry."""
        return self._atom(symbolic_dims.Atom(symbol))

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

    def _atom(self, atom: symbolic_dims.Atom) -> str:
        key = "atom", atom.text
        if key not in self.block.known:
            self.block.known[key] = self._word(atom.text) if not atom.operation else self._opaque(atom)
        known: str = self.block.known[key]
        return known

    def _word(self, symbol: str) -> str:
        return self.load_slot(self.block, self.symbol_slots[symbol])

    def _opaque(self, atom: symbolic_dims.Atom) -> str:
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
        remainder = self.new(self.block, f"srem i64 {left}, {right}")
        signs = self.new(self.block, f"xor i64 {remainder}, {right}")
        negative = self.new(self.block, f"icmp slt i64 {signs}, 0")
        is_nonzero = self.new(self.block, f"icmp ne i64 {remainder}, 0")
        adjusts = self.new(self.block, f"and i1 {negative}, {is_nonzero}")
        if atom.operation == "mod":
            adjusted = self.new(self.block, f"add i64 {remainder}, {right}")
            return self.new(self.block, f"select i1 {adjusts}, i64 {adjusted}, i64 {remainder}")
        quotient = self.new(self.block, f"sdiv i64 {left}, {right}")
        correction = self.new(self.block, f"zext i1 {adjusts} to i64")
        return self.new(self.block, f"sub i64 {quotient}, {correction}")


def llvm_type(dtype: str, lanes: int = 1) -> str:
    """The LLVM type of a register of a dtype."""
    kind = NUMBERS[dtype].llvm
    return kind if lanes == 1 else vector_type(dtype, kind, lanes)


def memory_type(dtype: str, lanes: int = 1) -> str:
    """The LLVM type of elements of a dtype in memory."""
    kind = NUMBERS[dtype].memory
    return kind if lanes == 1 else vector_type(dtype, kind, lanes)


def alignment(dtype: str) -> int:
    """The bytes to which NumPy aligns elements of a dtype."""
    return NUMBERS[PLANES.get(dtype, dtype)].size


def vector_type(dtype: str, kind: str, lanes: int) -> str:
    """The LLVM type of a vector. Complex numbers are pairs of lanes, as in memory."""
    if dtype in PLANES:
        return f"<{2 * lanes} x {NUMBERS[PLANES[dtype]].llvm}>"
    return f"<{lanes} x {kind}>"


def suffix(kind: str, lanes: int) -> str:
    """The overload suffix of an intrinsic's name for an LLVM type."""
    short = {"half": "f16", "float": "f32", "double": "f64"}.get(kind, kind)
    return short if lanes == 1 else f"v{lanes}{short}"
