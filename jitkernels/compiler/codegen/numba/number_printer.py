"""Numbers and elements of loops and branches in printed Python: variables, and elements of flat arrays."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from jitkernels.codegen.python.simd_library import Library
from jitkernels.compiler.codegen.control_flow.region_evaluator import RegionEvaluator, StridedPointer
from jitkernels.compiler.codegen.control_flow.scalar_emitter import overflow_bit
from jitkernels.compiler.codegen.control_flow.signal_polls import FULL, REFUSED
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register
from jitkernels.compiler.codegen.numba.python_call import INDENT
from jitkernels.compiler.codegen.numba.python_expressions import constant_text, extent_text, parenthesize
from jitkernels.compiler.codegen.numba.spelling import Spelling
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same, symbols_of

STATUS = {"refused": REFUSED, "full": FULL}


@dataclass
class NumberPrinter(RegionEvaluator):
    """Prints statements that compute numbers: registers are variables or literals, and array pointers variables.

    `symbol_slots`: the frame's words of symbols; `loop_variant`: the loop-variant symbols.
    """

    arrays: Mapping[Node, StridedArray]
    symbol_slots: dict[str, int]
    loop_variant: Container[str]
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
        self.symbols |= symbols_of(extent)
        return extent_text(extent)

    def new_name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def variable(self, text: str, stem: str = "v") -> str:
        """A new variable, set here."""
        name = self.new_name(stem)
        self.block.lines.append(f"{name} = {text}")
        return name

    def _number(self, node: Node) -> Register:
        """A constant, or an extent. Distances between such numbers fit in 64 bits: they are `near` one another."""
        if node.operation == "constant":
            result = Register(constant_text(node.options["value"], node.dtype), node.dtype)
        else:
            result = self._cast(Register(self.extent(node.options["extent"]), "int64"), node.dtype)
        self.near.add(result.text)
        return result

    def _cast(self, value: Register, dtype: str) -> Register:
        return self._named(self.spelling.cast(value.text, value.dtype, dtype), dtype)

    def _applied(self, node: Node, operands: list[Register]) -> Register:
        texts, kinds = [operand.text for operand in operands], [operand.dtype for operand in operands]
        return self._named(self.spelling.elementwise(node.operation, texts, kinds, node.dtype), node.dtype)

    def _natural_division(self, node: Node, left: Register, right: Register) -> Register:
        sign = "//" if node.operation == "floor_divide" else "%"
        return self._named(f"{parenthesize(left.text)} {sign} {parenthesize(right.text)}", node.dtype)

    def _loaded(self, element: str, dtype: str) -> Register:
        return self._named(f"{element} != 0" if dtype == "bool" else element, dtype)

    def _stored(self, element: str, value: Register) -> None:
        text = f"uint8({value.text})" if value.dtype == "bool" else value.text
        self.block.lines.append(f"{element} = {text}")

    def _element(self, array: StridedPointer, indices: Sequence[Register]) -> str:
        parts = []
        for index, stride in zip(indices, array.strides, strict=True):
            parts.append(
                index.text if same(stride, 1) else f"{parenthesize(index.text)} * {parenthesize(self.extent(stride))}"
            )
        return f"{array.pointer}[{' + '.join(parts) or '0'}]"

    def _bail_out_if(self, condition: Register, label: str = "refused") -> None:
        if condition.text != "False":
            self.block.lines += [f"if {condition.text}:", f"{INDENT}return {STATUS[label]}"]

    def _named(self, text: str, dtype: str) -> Register:
        return Register(text if text.isidentifier() else self.variable(text), dtype)

    def _bounded(self, node: Node, index: Register) -> Register:
        extent, text = self.extent(node.options["extent"]), index.text
        if node.options["counts_back"]:
            text = self.variable(f"{text} if {text} >= 0 else {text} + {parenthesize(extent)}")
        is_outside = Register(f"{text} < 0 or {text} >= {parenthesize(extent)}", "bool")
        self._bail_out_if(is_outside, "full" if "grows" in node.options else "refused")
        return Register(text, "int64")

    def _overflows(self, of: str, left: Register, right: Register) -> Register:
        def code(function: FunctionBuilder, operands: list[Register]) -> Register:
            return overflow_bit(function, function.block, of, *operands)

        texts, kinds = [left.text, right.text], ["int64", "int64"]
        return self._named(self.spelling.call(f"{of}_overflows", texts, kinds, "bool", code), "bool")
