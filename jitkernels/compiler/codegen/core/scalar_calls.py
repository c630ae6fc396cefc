"""Elementwise operations: calls of library functions in as many lanes as the operands have."""

from jitkernels.compiler.codegen.core import complex_lanes
from jitkernels.compiler.codegen.core.casts import emit_cast
from jitkernels.compiler.codegen.core.fp_special_guards import GuardedLibrary, is_guarded
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register, llvm_type
from jitkernels.compiler.ir.elementwise_ops import BETWEEN_PLANES
from jitkernels.compiler.ir.ops import OPERATIONS


def emit_elementwise(
    function: FunctionBuilder, block: Block, operation: str, registers: list[Register], dtype: str
) -> Register:
    """Emit an elementwise operation. Half-precision operands are computed in single precision, as NumPy does."""
    if operation in BETWEEN_PLANES:
        return complex_lanes.emit(function, block, operation, registers, dtype)
    scalar = OPERATIONS[operation].scalar
    assert scalar is not None, "elementwise"
    kinds = tuple(register.dtype for register in registers)
    code = scalar.function(kinds)
    assert code is not None, "graphs are verified"
    if "float16" in kinds and not scalar.halves:
        registers = [
            emit_cast(function, block, register, "float32") if register.dtype == "float16" else register
            for register in registers
        ]
        kinds = tuple(register.dtype for register in registers)
    lanes = registers[0].lanes
    symbol, result = function.library.called(code, kinds, lanes)
    if isinstance(function.library, GuardedLibrary) and is_guarded(operation, kinds):
        symbol = function.library.guarded(operation, code, kinds, lanes)
    passed = ", ".join(f"{llvm_type(register.dtype, lanes)} {register.text}" for register in registers)
    text = function.new(block, f"call {llvm_type(result, lanes)} {symbol}({passed})")
    return emit_cast(function, block, Register(text, result, lanes), dtype)
