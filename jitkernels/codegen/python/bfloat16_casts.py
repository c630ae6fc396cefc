"""Casts between float32 and bfloat16 where processors have no instruction: LLVM calls a function of compiler-rt."""

from collections.abc import Callable

from jitkernels.core import cpu_target

ROUNDING_FEATURES = frozenset({"avx512bf16", "avxneconvert", "bf16"})
"""Features that have the instruction: two of x86, and one of aarch64."""
QUIET_BIT = 0x40
"""Of a bfloat16: a NaN whose payload lies in the lower half only would become infinity."""


def has_instruction() -> bool:
    """Whether the processor rounds float32 to bfloat16 by one instruction."""
    return bool(ROUNDING_FEATURES & cpu_target.target().features)


def _vector(kind: str, lanes: int) -> str:
    return kind if lanes == 1 else f"<{lanes} x {kind}>"


def _splat(number: int, lanes: int) -> str:
    return str(number) if lanes == 1 else f"splat (i32 {number})"


def emit_rounding(new: Callable[[str], str], value: str, lanes: int) -> str:
    """Emit instructions that round a float, or a vector of them, to the nearest bfloat, ties to even."""
    single, whole, half = (_vector(kind, lanes) for kind in ("float", "i32", "i16"))
    bits = new(f"bitcast {single} {value} to {whole}")
    high = new(f"lshr {whole} {bits}, {_splat(16, lanes)}")
    odd = new(f"and {whole} {high}, {_splat(1, lanes)}")
    bias = new(f"add {whole} {odd}, {_splat(0x7FFF, lanes)}")
    near = new(f"lshr {whole} {new(f'add {whole} {bits}, {bias}')}, {_splat(16, lanes)}")
    magnitude = new(f"and {whole} {bits}, {_splat(0x7FFFFFFF, lanes)}")
    is_nan = new(f"icmp ugt {whole} {magnitude}, {_splat(0x7F800000, lanes)}")
    quiet = new(f"or {whole} {high}, {_splat(QUIET_BIT, lanes)}")
    rounded = new(f"select {_vector('i1', lanes)} {is_nan}, {whole} {quiet}, {whole} {near}")
    return new(f"bitcast {half} {new(f'trunc {whole} {rounded} to {half}')} to {_vector('bfloat', lanes)}")


def emit_widening(new: Callable[[str], str], value: str, lanes: int) -> str:
    """Emit instructions that extend a bfloat to float: LLVM would move ``floor`` and others before an ``fpext``."""
    whole, half = _vector("i32", lanes), _vector("i16", lanes)
    short = new(f"bitcast {_vector('bfloat', lanes)} {value} to {half}")
    bits = new(f"zext {half} {short} to {whole}")
    return new(f"bitcast {whole} {new(f'shl {whole} {bits}, {_splat(16, lanes)}')} to {_vector('float', lanes)}")
