"""Casts between float32 and bfloat16 where processors have no instruction: LLVM calls a function of compiler-rt."""

from collections.abc import Callable

from jitkernels.codegen.python import types
from jitkernels.core import cpu_target

BFLOAT16, HALF, WORD = (types.NUMBERS[name] for name in ("bfloat16", "int16", "int32"))
ROUNDING_FEATURES = frozenset({"avx512bf16", "avxneconvert", "bf16"})
"""Features that have the instruction: two of x86, and one of aarch64."""
QUIET_BIT = 0x40
"""Of a bfloat16: a NaN whose payload lies in the lower half only would become infinity."""


def has_instruction() -> bool:
    """Whether the processor rounds float32 to bfloat16 by one instruction."""
    return bool(ROUNDING_FEATURES & cpu_target.target().features)


def emit_rounding(new: Callable[[str], str], value: str, lanes: int) -> str:
    """Emit instructions that round a float, or a vector of them, to the nearest bfloat, ties to even."""
    single, whole, half, bit, result = (
        types.register(kind, lanes) for kind in (types.FLOAT32, WORD, HALF, types.BOOL, BFLOAT16)
    )

    def splat(number: int) -> str:
        return types.constant(WORD, number, lanes)

    bits = new(f"bitcast {single} {value} to {whole}")
    high = new(f"lshr {whole} {bits}, {splat(16)}")
    odd = new(f"and {whole} {high}, {splat(1)}")
    bias = new(f"add {whole} {odd}, {splat(0x7FFF)}")
    near = new(f"lshr {whole} {new(f'add {whole} {bits}, {bias}')}, {splat(16)}")
    magnitude = new(f"and {whole} {bits}, {splat(0x7FFFFFFF)}")
    is_nan = new(f"icmp ugt {whole} {magnitude}, {splat(0x7F800000)}")
    quiet = new(f"or {whole} {high}, {splat(QUIET_BIT)}")
    rounded = new(f"select {bit} {is_nan}, {whole} {quiet}, {whole} {near}")
    return new(f"bitcast {half} {new(f'trunc {whole} {rounded} to {half}')} to {result}")


def emit_widening(new: Callable[[str], str], value: str, lanes: int) -> str:
    """Emit instructions that extend a bfloat to float: LLVM would move ``floor`` and others before an ``fpext``."""
    narrow, half, whole, single = (types.register(kind, lanes) for kind in (BFLOAT16, HALF, WORD, types.FLOAT32))
    bits = new(f"zext {half} {new(f'bitcast {narrow} {value} to {half}')} to {whole}")
    return new(f"bitcast {whole} {new(f'shl {whole} {bits}, {types.constant(WORD, 16, lanes)}')} to {single}")
