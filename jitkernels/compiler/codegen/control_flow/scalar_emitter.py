"""Scalars and elements of loop and branch regions: registers, promotable allocas, element loads and stores."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.control_flow.region_evaluator import RegionEvaluator, StridedPointer
from jitkernels.compiler.codegen.core.casts import emit_cast
from jitkernels.compiler.codegen.core.ir_builder import (
    Block,
    FunctionBuilder,
    Register,
    alignment,
    llvm_type,
    memory_type,
)
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same

EXTENSIONS = {"bool": "zeroext", "int8": "signext", "int16": "signext", "uint8": "zeroext", "uint16": "zeroext"}
"""How C passes integers that are narrower than an int."""
OF_LLVM = {"add": "add", "subtract": "sub", "multiply": "mul"}


class FlowFunction(FunctionBuilder):
    """A function in which some symbols are loop-variant: they have another value in each iteration."""

    def __init__(self, library: Library, symbol_slots: dict[str, int], loop_variant: Container[str]) -> None:
        super().__init__(library, symbol_slots)
        self.loop_variant = loop_variant
        self.now = self.block
        self.variables: dict[str, str] = {}

    def let(self, symbol: str, text: str) -> None:
        """Set a loop-variant symbol to its value in this iteration."""
        if symbol in self.loop_variant:
            if symbol not in self.variables:
                self.variables[symbol] = self.variable("i64")
            self.now.lines.append(f"  store i64 {text}, ptr {self.variables[symbol]}")

    def extent(self, extent: Number) -> str:
        """Return an extent as an i64: evaluated in this iteration if it is loop-variant, else at function entry."""
        if not symbolic_dims.is_loop_variant(extent):
            return super().extent(extent)
        entry_block, self.block = self.block, Block(lines=self.now.lines)
        result = self._polynomial(extent)
        self.block = entry_block
        return result

    def current(self, symbol: str) -> str:
        """Load the value of a loop-variant symbol in this iteration."""
        return self.new(self.now, f"load i64, ptr {self.variables[symbol]}")

    def _word(self, symbol: str) -> str:
        return self.current(symbol) if symbol in self.loop_variant else super()._word(symbol)


@dataclass
class ScalarEmitter(RegionEvaluator):
    """Emits scalar computation. `pointers`: the array arguments, by their frame words.

    `unwrapped`: remainders that equal their dividends in what is emitted now. `access_group`: LLVM's metadata of the
    loads and stores of a loop whose iterations do not depend on one another's memory.
    """

    arrays: Mapping[Node, StridedArray]
    function: FlowFunction
    pointers: dict[int, str] = field(default_factory=dict, kw_only=True)
    unwrapped: set[Node] = field(default_factory=set, kw_only=True)
    access_group: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        self.block = self.function.now = Block(self.function.block)

    def _new(self, expression: str) -> str:
        return self.function.new(self.block, expression)

    def _pointer(self, word: int, dtype: str = "") -> str:  # noqa: ARG002  # printed Python has typed pointers
        return self.pointers.setdefault(word, f"%array{word}")

    def _number(self, node: Node) -> Register:
        if node.operation == "constant":
            return Register(constant(NUMBERS[node.dtype], node.options["value"]), node.dtype)
        return self._cast(Register(self.function.extent(node.options["extent"]), "int64"), node.dtype)

    def _cast(self, value: Register, dtype: str) -> Register:
        return emit_cast(self.function, self.block, value, dtype)

    def _applied(self, node: Node, operands: list[Register]) -> Register:
        return emit_elementwise(self.function, self.block, node.operation, operands, node.dtype)

    def _natural_division(self, node: Node, left: Register, right: Register) -> Register:
        name = "udiv" if node.operation == "floor_divide" else "urem"
        return Register(self._new(f"{name} i64 {left.text}, {right.text}"), node.dtype)

    def _division_by_positive(self, node: Node, left: Register, right: Register) -> Register:
        """Round down without a test of the divisor, for which NumPy would report a division by zero."""
        rest = self._new(f"srem i64 {left.text}, {right.text}")
        sign = self._new(f"ashr i64 {rest}, 63")
        if node.operation == "remainder":
            added = self._new(f"and i64 {sign}, {right.text}")
            return Register(self._new(f"add i64 {rest}, {added}"), node.dtype)
        quotient = self._new(f"sdiv i64 {left.text}, {right.text}")
        return Register(self._new(f"add i64 {quotient}, {sign}"), node.dtype)

    def _wrapped(self, node: Node, left: Register, right: Register) -> Register:
        """Select instead of dividing; where it is known not to wrap around, the dividend itself."""
        if node in self.unwrapped:
            return left
        result, (is_below, is_above) = left.text, node.options["wraps"]
        for may_wrap, comparison, back in (
            (is_above, f"sge i64 {left.text}, {right.text}", "sub"),
            (is_below, f"slt i64 {left.text}, 0", "add"),
        ):
            if may_wrap:
                wraps, other = self._new(f"icmp {comparison}"), self._new(f"{back} i64 {left.text}, {right.text}")
                result = self._new(f"select i1 {wraps}, i64 {other}, i64 {result}")
        return Register(result, node.dtype)

    def _loaded(self, element: str, dtype: str) -> Register:
        text = self._new(f"load {memory_type(dtype)}, ptr {element}, align {alignment(dtype)}{self.access_group}")
        return Register(self._new(f"icmp ne i8 {text}, 0") if dtype == "bool" else text, dtype)

    def _stored(self, element: str, value: Register) -> None:
        text = self._new(f"zext i1 {value.text} to i8") if value.dtype == "bool" else value.text
        kind, size = memory_type(value.dtype), alignment(value.dtype)
        self.block.lines.append(f"  store {kind} {text}, ptr {element}, align {size}{self.access_group}")

    def _bail_out_if(self, condition: Register, label: str = "refused") -> None:
        if condition.text == "false":
            return
        resume = self.function.label()
        self.block.lines += [f"  br i1 {condition.text}, label %{label}, label %{resume}, !prof !4", f"{resume}:"]

    def _bounded(self, node: Node, index: Register) -> Register:
        """Normalize a negative index, and bail out if it is out of bounds.

        A growing list bails out to `full` instead, and the caller retries with a larger tape.
        """
        extent = self.function.extent(node.options["extent"])
        label = "full" if "grows" in node.options else "refused"
        if node.options["counts_back"]:
            return Register(self._counted_back(index.text, extent, label), "int64")
        self._bail_out_if(Register(self._new(f"icmp uge i64 {index.text}, {extent}"), "bool"), label)
        return index

    def _counted_back(self, index: str, extent: str, label: str) -> str:
        """An index from the start; code for indices from the end stands apart, as these are rare."""
        from_start, apart, from_end, use = (self.function.label() for _ in range(4))
        is_inside = self._new(f"icmp ult i64 {index}, {extent}")
        self.block.lines += [
            f"  br label %{from_start}", f"{from_start}:",
            f"  br i1 {is_inside}, label %{use}, label %{apart}, !prof !7", f"{apart}:",
        ]  # fmt: skip
        positive = self._new(f"add i64 {index}, {extent}")
        is_outside = self._new(f"icmp uge i64 {positive}, {extent}")
        self.block.lines += [
            f"  br i1 {is_outside}, label %{label}, label %{from_end}, !prof !4", f"{from_end}:",
            f"  br label %{use}", f"{use}:",
        ]  # fmt: skip
        return self._new(f"phi i64 [{index}, %{from_start}], [{positive}, %{from_end}]")

    def _overflows(self, of: str, left: Register, right: Register) -> Register:
        return overflow_bit(self.function, self.block, of, left, right)

    def _native_call(self, node: Node, address: Register, arguments: Sequence[Register]) -> list[Register]:
        order = Register("false", "bool")
        pointer = self._new(f"inttoptr i64 {address.text} to ptr")
        passed = ", ".join(
            f"{llvm_type(argument.dtype)} {EXTENSIONS.get(argument.dtype, '')} {argument.text}"
            for argument in arguments
        )
        result = node.options["signature"].result
        if not result:
            self.block.lines.append(f"  call void {pointer}({passed})")
            return [order, order]
        called = f"call {EXTENSIONS.get(result, '')} {llvm_type(result)} {pointer}({passed})"
        return [Register(self._new(called), result), order]

    def _element(self, array: StridedPointer, indices: Sequence[Register]) -> str:
        total = ""
        for index, stride in zip(indices, array.strides, strict=True):
            text = index.text
            if not same(stride, 1):
                text = self._new(f"mul nsw i64 {text}, {self.function.extent(stride)}")
            total = self._new(f"add nsw i64 {total}, {text}") if total else text
        if not total:
            return array.pointer
        return self._new(f"getelementptr inbounds {memory_type(array.dtype)}, ptr {array.pointer}, i64 {total}")

    def _variable(self, value: Register) -> str:
        """Return the address of an alloca that holds `value`."""
        at = self.function.variable(llvm_type(value.dtype))
        self._set(at, value)
        return at

    def _set(self, at: str, value: Register) -> None:
        self.block.lines.append(f"  store {llvm_type(value.dtype)} {value.text}, ptr {at}")

    def _get(self, at: str, dtype: str) -> Register:
        return Register(self._new(f"load {llvm_type(dtype)}, ptr {at}"), dtype)


def overflow_bit(function: FunctionBuilder, block: Block, of: str, left: Register, right: Register) -> Register:
    """Return whether a 64-bit operation overflows; LLVM merges it with the operation itself."""
    name = f"llvm.s{OF_LLVM[of]}.with.overflow.i64"
    function.library.declare(name, "{ i64, i1 }", ["i64", "i64"])
    both = function.new(block, f"call {{ i64, i1 }} @{name}(i64 {left.text}, i64 {right.text})")
    return Register(function.new(block, f"extractvalue {{ i64, i1 }} {both}, 1"), "bool")
