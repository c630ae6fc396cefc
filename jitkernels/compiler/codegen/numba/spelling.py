"""How each primitive operation is written in Python: an operator where Python's means the same, else a function.

A function is called by the operation and its dtypes, such as ``exp_float32``. In compiled code it is the scalar code
of the table of operations, so that both code generators compute the same; `python_scalars` has it for CPython.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.casts import emit_cast
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder, Register, llvm_type
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.codegen.numba.python_expressions import parenthesize

FLOATS = ("float32", "float64")
COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
OPERATORS = {
    **{key: {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", **COMPARISONS} for key in FLOATS},
    **{key: {"add": "+", "subtract": "-", "multiply": "*", **COMPARISONS} for key in ("int64", "uint64")},
    "bool": {"logical_and": "&", "logical_or": "|", "logical_xor": "^"},
}
"""By the dtype of all operands, the operations that an operator of Python is; numba computes others in wider types."""


def memory_dtype(dtype: str) -> str:
    """What holds a number in compiled Python, which has no half-precision floats: these are their bits there."""
    return "uint16" if dtype == "float16" else dtype


def function_name(operation: str, kinds: Sequence[str], dtype: str) -> str:
    """The function of an operation for operands of some dtypes, and its result's."""
    own = [kinds[0]] if len({*kinds}) == 1 else [*kinds]
    usual = dtype in (kinds[-1], "bool")
    return "_".join([operation, *own, *([] if usual else ["to", dtype])])


@dataclass
class Spelling:
    """The functions that one printed function calls: their LLVM code, operand dtypes and result."""

    library: Library
    functions: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def elementwise(self, operation: str, operands: Sequence[str], kinds: Sequence[str], dtype: str) -> str:
        """An elementwise operation as an expression of the texts of its operands."""
        if operation in ("real", "imag"):
            return f"{parenthesize(operands[0])}.{operation}"
        if operation == "complex":
            text = f"complex({', '.join(operands)})"
            return text if dtype == "complex128" else f"complex64({text})"
        sign = OPERATORS.get(kinds[0], {}).get(operation) if len({*kinds}) == 1 and len(kinds) == 2 else None
        if sign is not None and dtype in (kinds[0], "bool"):
            return f"{parenthesize(operands[0])} {sign} {parenthesize(operands[1])}"
        if operation == "negative" and kinds[0] in FLOATS:
            return f"-{parenthesize(operands[0])}"
        if operation == "logical_not" and kinds[0] == "bool":
            return f"not {parenthesize(operands[0])}"
        if operation == "positive" and kinds[0] == dtype:
            return operands[0]
        name = function_name(operation, kinds, dtype)

        def code(function: FunctionBuilder, registers: list[Register]) -> Register:
            return emit_elementwise(function, function.block, operation, registers, dtype)

        return self.call(name, operands, kinds, dtype, code)

    def cast(self, operand: str, kind: str, dtype: str) -> str:
        """A number as another type."""
        if kind == dtype:
            return operand
        name = f"cast_{kind}_to_{dtype}"
        return self.call(
            name,
            [operand],
            [kind],
            dtype,
            lambda function, operands: emit_cast(function, function.block, operands[0], dtype),
        )

    def call(
        self,
        name: str,
        operands: Sequence[str],
        kinds: Sequence[str],
        dtype: str,
        code: Callable[[FunctionBuilder, list[Register]], Register],
    ) -> str:
        """A call of a function, whose LLVM instructions `code` writes."""
        if name not in self.functions:
            self.functions[name] = tuple(kinds), dtype
            self.texts[name] = self._definition(name, kinds, dtype, code)
        return f"{name}({', '.join(operands)})"

    def _definition(
        self, name: str, kinds: Sequence[str], dtype: str, code: Callable[[FunctionBuilder, list[Register]], Register]
    ) -> str:
        function = FunctionBuilder(self.library, {})
        registers = []
        for number, kind in enumerate(kinds):
            text = f"%a{number}"
            if kind == "float16":
                text = function.new(function.block, f"bitcast i16 {text} to half")
            registers.append(Register(text, kind))
        result = code(function, registers)
        text, kind = result.text, llvm_type(memory_dtype(dtype))
        if dtype == "float16":
            text = function.new(function.block, f"bitcast half {text} to i16")
        taken = ", ".join(f"{NUMBERS[memory_dtype(dtype)].llvm} %a{i}" for i, dtype in enumerate(kinds))
        lines = "\n".join([*function.memory, *function.block.lines])
        return f'define {kind} @"{name}"({taken}) alwaysinline nounwind {{\n{lines}\n  ret {kind} {text}\n}}'
