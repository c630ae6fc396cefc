"""Strength reduction of integer division by a loop-invariant divisor: multiply by its reciprocal, in lanes.

For a divisor d, with `2**l` the least power of two >= d, the loop preheader computes a multiplier `m = (2**l - d) *
2**bits // d + 1` and two shifts. With t the high half of `m * n`, `(t + (n - t >> 1)) >> l - 1` is the unsigned
quotient of every n (Granlund and Montgomery, 1994). A negative quotient rounded down is `~(~n // d)`.
"""

from dataclasses import dataclass
from functools import partial

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast, splat
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register, llvm_type
from jitkernels.microkernels.maths import invariant_division

KNOWN = {
    "floor_divide": (invariant_division.quotient_of_signed, invariant_division.quotient),
    "remainder": (invariant_division.remainder, invariant_division.remainder),
    "fmod": (invariant_division.rest_of_signed, invariant_division.remainder),
}
"""By operation, the function of quotient, dividend and divisor: for signed and for unsigned integers."""
WORKED_ON = {"int8": "int16", "uint8": "uint16"}
"""Bytes are multiplied as 16-bit integers."""


@dataclass(frozen=True)
class _InvariantDivisor:
    """The reciprocal of a loop-invariant divisor; `sign` has all bits set where the divisor is negative.

    Bytes are divided as 16-bit numbers, for which `2**16 // d + 1` is exact. The multiplier of 1 does not fit:
    `shifts` is then a mask of all bits, which adds the dividend.
    """

    multiplier: Register
    shifts: tuple[Register, ...]
    sign: Register


def is_strength_reduced(operation: str, dtype: str, lanes: int) -> bool:
    """Return whether an operation in lanes by an invariant divisor is strength-reduced here."""
    return operation in KNOWN and NUMBERS[dtype].kind == "int" and lanes > 1


def multiply_by_reciprocal(
    function: FunctionBuilder, block: Block, home: Block, operation: str, number: Register, divisor: Register
) -> Register:
    """Divide lanes by an invariant divisor, whose reciprocal is computed in block `home`."""
    dtype, lanes = number.dtype, number.lanes
    key = "whole divisor", divisor.text, dtype
    reciprocal: _InvariantDivisor | None = home.find(key)
    if reciprocal is None:
        reciprocal = home.known[key] = _reciprocal(function, home, divisor)
    widened = emit_cast(function, block, number, WORKED_ON.get(dtype, dtype))
    quotient = Register(_quotient(function, block, home, widened, reciprocal), widened.dtype, lanes)
    floored = emit_cast(function, block, quotient, dtype).text
    code = KNOWN[operation][0 if NUMBERS[dtype].is_signed else 1]
    symbol, result = function.library.called(code, (dtype,) * 3, lanes)
    kind = llvm_type(dtype, lanes)
    repeated = broadcast(function, home, divisor, lanes).text
    text = function.new(
        block, f"call {llvm_type(result, lanes)} {symbol}({kind} {floored}, {kind} {number.text}, {kind} {repeated})"
    )
    return Register(text, result, lanes)


def _reciprocal(function: FunctionBuilder, home: Block, divisor: Register) -> _InvariantDivisor:
    """Compute the multiplier and the shifts of a divisor in block `home`; those of 1 for a divisor of 0."""
    is_byte, dtype = divisor.dtype in WORKED_ON, WORKED_ON.get(divisor.dtype, divisor.dtype)
    divisor = emit_cast(function, home, divisor, dtype)
    bits = 8 * NUMBERS[dtype].size
    new = partial(function.new, home)

    def narrow(number: str) -> Register:
        return Register(number if bits == 64 else new(f"trunc i64 {number} to i{bits}"), dtype)

    kind, size, sign = f"i{bits}", divisor.text, "0"
    if NUMBERS[dtype].is_signed:
        sign = new(f"ashr {kind} {size}, {bits - 1}")
        flipped = new(f"xor {kind} {size}, {sign}")
        size = new(f"sub {kind} {flipped}, {sign}")
    if bits < 64:
        size = new(f"zext {kind} {size} to i64")
    size = new(f"call i64 @llvm.umax.i64(i64 {size}, i64 1)")
    if is_byte:
        multiplier = new(f"add i64 {new(f'udiv i64 65536, {size}')}, 1")
        is_one = new(f"sext i1 {new(f'icmp eq i64 {size}, 1')} to i64")
        return _InvariantDivisor(narrow(multiplier), (narrow(is_one),), Register(sign, dtype))
    before = new(f"sub i64 {size}, 1")
    zeros = new(f"call i64 @llvm.ctlz.i64(i64 {before}, i1 false)")
    function.library.declare("llvm.umax.i64", "i64", ["i64", "i64"])
    function.library.declare("llvm.ctlz.i64", "i64", ["i64", "i1"])
    length = new(f"sub i64 64, {zeros}")
    power = new(f"shl i64 1, {length}")
    wraps = new(f"icmp eq i64 {zeros}, 0")
    power = new(f"select i1 {wraps}, i64 0, i64 {power}")
    above = new(f"sub i64 {power}, {size}")
    if bits < 64:
        shifted = new(f"shl i64 {above}, {bits}")
        multiplier = new(f"udiv i64 {shifted}, {size}")
    else:
        symbol, _ = function.library.called(invariant_division.next_digits, ("uint64", "uint64"))
        shifted_operands = [new(f"shl i64 {is_one}, {zeros}") for is_one in (above, size)]
        multiplier = new(
            f"call i64 {symbol}(i64 {shifted_operands[0]}, i64 {new(f'or i64 {shifted_operands[1]}, {1 << 63}')})"
        )
    multiplier = new(f"add i64 {multiplier}, 1")
    first = new(f"call i64 @llvm.umin.i64(i64 {length}, i64 1)")
    function.library.declare("llvm.umin.i64", "i64", ["i64", "i64"])
    last = new(f"sub i64 {length}, {first}")
    return _InvariantDivisor(narrow(multiplier), (narrow(first), narrow(last)), Register(sign, dtype))


def _quotient(
    function: FunctionBuilder, block: Block, home: Block, number: Register, reciprocal: _InvariantDivisor
) -> str:
    """Return the floor quotient."""
    dtype, lanes = number.dtype, number.lanes
    if not NUMBERS[dtype].is_signed:
        return _unsigned_quotient(function, block, home, number, reciprocal)
    kind = llvm_type(dtype, lanes)
    new = partial(function.new, block)
    # Negate both where the divisor is negative. The least number is its own negative, right as unsigned.
    sign = broadcast(function, home, reciprocal.sign, lanes).text
    flipped = new(f"xor {kind} {number.text}, {sign}")
    negative = new(f"icmp slt {kind} {flipped}, {sign}")
    complement = new(f"sext {llvm_type('bool', lanes)} {negative} to {kind}")
    signed_number = new(f"sub {kind} {flipped}, {sign}")
    size = Register(new(f"xor {kind} {signed_number}, {complement}"), dtype, lanes)
    return new(f"xor {kind} {_unsigned_quotient(function, block, home, size, reciprocal)}, {complement}")


def _unsigned_quotient(
    function: FunctionBuilder, block: Block, home: Block, number: Register, reciprocal: _InvariantDivisor
) -> str:
    """Return the quotient of unsigned numbers."""
    dtype, lanes = number.dtype, number.lanes
    kind = llvm_type(dtype, lanes)
    new = partial(function.new, block)
    multiplier, first, *others = (
        broadcast(function, home, shift, lanes).text for shift in (reciprocal.multiplier, *reciprocal.shifts)
    )
    high = _high_half(function, block, number, multiplier)
    if not others:
        return new(f"add {kind} {high}, {new(f'and {kind} {number.text}, {first}')}")
    (last,) = others
    rest = new(f"sub {kind} {number.text}, {high}")
    half = new(f"lshr {kind} {rest}, {first}")
    total = new(f"add {kind} {high}, {half}")
    return new(f"lshr {kind} {total}, {last}")


def _high_half(function: FunctionBuilder, block: Block, number: Register, multiplier: str) -> str:
    """Return the high half of the products."""
    lanes, bits = number.lanes, 8 * NUMBERS[number.dtype].size
    kind = llvm_type(number.dtype, lanes)
    new = partial(function.new, block)
    if bits < 32:
        wide = f"<{lanes} x i{2 * bits}>"
        dividend, reciprocal = (new(f"zext {kind} {text} to {wide}") for text in (number.text, multiplier))
        product = new(f"mul {wide} {dividend}, {reciprocal}")
        high = new(f"lshr {wide} {product}, {splat(str(bits), f'i{2 * bits}', lanes)}")
        return new(f"trunc {wide} {high} to {kind}")
    if bits == 32:
        # Vector multiplies widen every second lane only.
        wide = f"<{lanes // 2} x i64>"
        both = [new(f"bitcast {kind} {text} to {wide}") for text in (number.text, multiplier)]
        steps, low = splat("32", "i64", lanes // 2), splat(str((1 << 32) - 1), "i64", lanes // 2)
        even = [new(f"and {wide} {half}, {low}") for half in both]
        odd = [new(f"lshr {wide} {half}, {steps}") for half in both]
        products = [new(f"mul {wide} {left}, {right}") for left, right in (even, odd)]
        below = new(f"lshr {wide} {products[0]}, {steps}")
        above = new(f"and {wide} {products[1]}, {splat(str(-(1 << 32)), 'i64', lanes // 2)}")
        return new(f"bitcast {wide} {new(f'or {wide} {below}, {above}')} to {kind}")
    symbol, _ = function.library.called(invariant_division.high_half, ("uint64", "uint64"), lanes)
    return new(f"call {kind} {symbol}({kind} {number.text}, {kind} {multiplier})")
