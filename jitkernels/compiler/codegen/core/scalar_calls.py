"""Elementwise operations: calls of scalar code, in as many lanes as the operands have."""

from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type
from jitkernels.graph.emit.conversions import converted
from jitkernels.graph.emit.watched import WatchedLibrary, is_watched
from jitkernels.graph.operations import OPERATIONS


def applied(
    function: Function, block: Block, operation: str, registers: list[Register], dtype: str
) -> Register:
    """An elementwise operation. Half-precision numbers are computed in single precision, as NumPy does."""
    scalar = OPERATIONS[operation].scalar
    assert scalar is not None, "elementwise"
    kinds = tuple(register.dtype for register in registers)
    code = scalar.function(kinds)
    assert code is not None, "graphs are verified"
    if "float16" in kinds and not scalar.halves:
        registers = [
            converted(function, block, one, "float32") if one.dtype == "float16" else one for one in registers
        ]
        kinds = tuple(register.dtype for register in registers)
    lanes = registers[0].lanes
    symbol, result = function.library.called(code, kinds, lanes)
    if isinstance(function.library, WatchedLibrary) and is_watched(operation, kinds):
        symbol = function.library.watched(operation, code, kinds, lanes)
    passed = ", ".join(f"{llvm_type(one.dtype, lanes)} {one.text}" for one in registers)
    text = function.new(block, f"call {llvm_type(result, lanes)} {symbol}({passed})")
    return converted(function, block, Register(text, result, lanes), dtype)
