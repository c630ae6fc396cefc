"""Casts between dtypes with NumPy's semantics, and broadcasts of scalars to lanes."""

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.python import half_casts
from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core import complex_lanes
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register, llvm_type
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.microkernels.maths import float_to_int


def emit_cast(function: FunctionBuilder, block: Block, value: Register, dtype: str) -> Register:
    """Cast a value to `dtype`. Floats outside of an integer dtype's range give what the processor makes of them."""
    if value.dtype == dtype:
        return value
    source, target = NUMBERS[value.dtype], NUMBERS[dtype]
    lanes = value.lanes

    def emit(instruction: str, operand: Register, to: str) -> Register:
        kinds = f"{llvm_type(operand.dtype, lanes)} {operand.text} to {llvm_type(to, lanes)}"
        return Register(function.new(block, f"{instruction} {kinds}"), to, lanes)

    if target.kind == "bool":
        if half_casts.is_emulated(source):
            value = emit_cast(function, block, value, "float32")
            source = NUMBERS["float32"]
        zero = splat(constant(source, 0), source.llvm, lanes)
        compare = "fcmp une" if source.kind == "float" else "icmp ne"
        kind = llvm_type(value.dtype, lanes)
        return Register(function.new(block, f"{compare} {kind} {value.text}, {zero}"), dtype, lanes)
    if source.kind == "float" and target.kind == "float":
        if value.dtype == "float64" and dtype == "float16":
            return _by(float_to_int.half, function, block, value)
        if value.dtype == "float16" and dtype == "float64":
            return emit_cast(function, block, emit_cast(function, block, value, "float32"), dtype)
        if half_casts.is_emulated(target):
            single = value if value.dtype == "float32" else emit_cast(function, block, value, "float32")
            text = half_casts.emit_rounding(lambda step: function.new(block, step), single.text, target, lanes)
            return Register(text, dtype, lanes)
        if half_casts.is_emulated(source):
            text = half_casts.emit_widening(lambda step: function.new(block, step), value.text, source, lanes)
            return emit_cast(function, block, Register(text, "float32", lanes), dtype)
        return emit("fpext" if source.size < target.size else "fptrunc", value, dtype)
    if source.kind == "float":
        if value.dtype == "float16":
            if dtype == "uint32":  # NumPy casts these with scalar code, and other floats with vector code
                return emit_cast(function, block, emit_cast(function, block, value, "int64"), dtype)
            return emit_cast(function, block, emit_cast(function, block, value, "float32"), dtype)
        if dtype in ("uint32", "uint64"):
            return _by(float_to_int.uint32 if dtype == "uint32" else float_to_int.uint64, function, block, value)
        # Casts to narrow integers keep the low bits of a wide one, as C compilers do on these machines.
        wide = "int32" if target.size < 4 else dtype
        result = emit("fptosi", value, wide)
        kind = llvm_type(wide, lanes)
        result = Register(function.new(block, f"freeze {kind} {result.text}"), wide, lanes)
        return emit_cast(function, block, result, dtype)
    signed = source.is_signed and source.kind == "int"
    if target.kind == "float":
        if dtype in ("float16", "bfloat16"):
            return emit_cast(function, block, emit_cast(function, block, value, "float32"), dtype)
        return emit("sitofp" if signed else "uitofp", value, dtype)
    if source.llvm == target.llvm:
        return Register(value.text, dtype, lanes)
    wider = source.kind == "bool" or source.size < target.size
    return emit("trunc" if not wider else "sext" if signed else "zext", value, dtype)


def _by(code: Callable[..., Any], function: FunctionBuilder, block: Block, value: Register) -> Register:
    """Call a function of the scalar library on a value."""
    symbol, result = function.library.called(code, (value.dtype,), value.lanes)
    call = f"call {llvm_type(result, value.lanes)} {symbol}({llvm_type(value.dtype, value.lanes)} {value.text})"
    result_text: str = function.new(block, call)
    return Register(result_text, result, value.lanes)


def splat(text: str, kind: str, lanes: int) -> str:
    """Return LLVM's text of a constant in all lanes."""
    return text if lanes == 1 else f"splat ({kind} {text})"


def broadcast(function: FunctionBuilder, block: Block, value: Register, lanes: int) -> Register:
    """Broadcast a scalar to all lanes; each of several lanes to as many adjacent lanes."""
    if value.lanes == lanes:
        return value
    if value.dtype in PLANES:
        return complex_lanes.spread(function, block, value, lanes)
    if value.lanes > 1:
        numbers = (lane // (lanes // value.lanes) for lane in range(lanes))
        text = function.shuffle(block, llvm_type(value.dtype), value.lanes, value.text, "poison", numbers)
        return Register(text, value.dtype, lanes)
    key = "spread", value.text, value.dtype, lanes
    result: Register | None = block.find(key)
    if result is None:
        is_constant, kind = not value.text.startswith("%"), llvm_type(value.dtype)
        text = splat(value.text, kind, lanes) if is_constant else function.splat(block, kind, lanes, value.text)
        result = Register(text, value.dtype, lanes)
        block.known[key] = result
    return result
