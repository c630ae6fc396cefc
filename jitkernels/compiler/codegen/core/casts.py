"""Numbers as other types, as NumPy casts them."""

from collections.abc import Callable
from typing import Any

from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type
from jitkernels.maths import casts
from jitkernels.native.language.types import NUMBERS, constant


def converted(function: Function, block: Block, value: Register, dtype: str) -> Register:
    """A value as another type. What no integer of a type is near to becomes what the processor makes of it."""
    if value.dtype == dtype:
        return value
    given, wanted = NUMBERS[value.dtype], NUMBERS[dtype]
    lanes = value.lanes

    def step(instruction: str, one: Register, to: str) -> Register:
        kinds = f"{llvm_type(one.dtype, lanes)} {one.text} to {llvm_type(to, lanes)}"
        return Register(function.new(block, f"{instruction} {kinds}"), to, lanes)

    if wanted.kind == "bool":
        zero = splat(constant(given, 0), given.llvm, lanes)
        compare = "fcmp une" if given.kind == "float" else "icmp ne"
        kind = llvm_type(value.dtype, lanes)
        return Register(function.new(block, f"{compare} {kind} {value.text}, {zero}"), dtype, lanes)
    if given.kind == "float" and wanted.kind == "float":
        if value.dtype == "float64" and dtype == "float16":
            return _by(casts.half, function, block, value)
        if value.dtype == "float16" and dtype == "float64":
            return converted(function, block, converted(function, block, value, "float32"), dtype)
        return step("fpext" if given.size < wanted.size else "fptrunc", value, dtype)
    if given.kind == "float":
        if value.dtype == "float16":
            if dtype == "uint32":  # NumPy takes those number by number, and other floats in vectors
                return converted(function, block, converted(function, block, value, "int64"), dtype)
            return converted(function, block, converted(function, block, value, "float32"), dtype)
        if dtype in ("uint32", "uint64"):
            return _by(casts.uint32 if dtype == "uint32" else casts.uint64, function, block, value)
        # Narrow integers get the low bits of wide ones, as in C on the machines that there are.
        wide = "int32" if wanted.size < 4 else dtype
        found = step("fptosi", value, wide)
        kind = llvm_type(wide, lanes)
        found = Register(function.new(block, f"freeze {kind} {found.text}"), wide, lanes)
        return converted(function, block, found, dtype)
    signed = given.is_signed and given.kind == "int"
    if wanted.kind == "float":
        if dtype == "float16":
            return converted(function, block, converted(function, block, value, "float32"), dtype)
        return step("sitofp" if signed else "uitofp", value, dtype)
    if given.llvm == wanted.llvm:
        return Register(value.text, dtype, lanes)
    wider = given.kind == "bool" or given.size < wanted.size
    return step("trunc" if not wider else "sext" if signed else "zext", value, dtype)


def _by(code: Callable[..., Any], function: Function, block: Block, value: Register) -> Register:
    """What a function of the scalar language makes of a value."""
    symbol, result = function.library.called(code, (value.dtype,), value.lanes)
    call = (
        f"call {llvm_type(result, value.lanes)} {symbol}({llvm_type(value.dtype, value.lanes)} {value.text})"
    )
    made: str = function.new(block, call)
    return Register(made, result, value.lanes)


def splat(text: str, kind: str, lanes: int) -> str:
    """A constant in all lanes."""
    return text if lanes == 1 else f"splat ({kind} {text})"


def spread(function: Function, block: Block, value: Register, lanes: int) -> Register:
    """A number in all lanes; of several, each in as many lanes side by side."""
    if value.lanes == lanes:
        return value
    if value.lanes > 1:
        vector, times = llvm_type(value.dtype, value.lanes), lanes // value.lanes
        numbers = ", ".join(f"i32 {lane // times}" for lane in range(lanes))
        return Register(
            function.new(
                block,
                f"shufflevector {vector} {value.text}, {vector} poison, <{lanes} x i32> <{numbers}>",
            ),
            value.dtype,
            lanes,
        )
    key = "spread", value.text, value.dtype, lanes
    found: Register | None = block.find(key)
    if found is None:
        kind, vector = llvm_type(value.dtype), llvm_type(value.dtype, lanes)
        if not value.text.startswith("%"):
            found = Register(splat(value.text, kind, lanes), value.dtype, lanes)
        else:
            first = function.new(block, f"insertelement {vector} poison, {kind} {value.text}, i64 0")
            text = function.new(
                block, f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer"
            )
            found = Register(text, value.dtype, lanes)
        block.known[key] = found
    return found
