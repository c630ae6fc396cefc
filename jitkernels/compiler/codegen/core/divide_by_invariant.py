"""Division of integers in lanes by a number that is the same in all of them: by multiplication, as no vector divides.

Of d, `2**l` being the least power of two that is no less, come once a multiplier `m = (2**l - d) * 2**bits // d + 1`
and two shifts. The high half t of `m * n` is a little less than wanted, and `(t + (n - t >> 1)) >> l - 1` is the
quotient of every n without a sign (Granlund and Montgomery, 1994). A negative quotient rounded down is `~(~n // d)`.
"""

from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type
from jitkernels.graph.emit.conversions import converted, splat, spread
from jitkernels.maths import divided
from jitkernels.native.language.types import NUMBERS

KNOWN = {
    "floor_divide": (divided.quotient_of_signed, divided.quotient),
    "remainder": (divided.remainder, divided.remainder),
    "fmod": (divided.rest_of_signed, divided.remainder),
}
"""For operations what they make of a quotient, of numbers with a sign and without one."""
WORKED_ON = {"int8": "int16", "uint8": "uint16"}
"""For bytes what they are multiplied as."""


@dataclass(frozen=True)
class _Divisor:
    """What is known of a divisor in front of the loop; `sign` has all bits where it is negative.

    Bytes are as numbers of 16 bits, for which `2**16 // d + 1` is exact. That of 1 does not fit: `shifts` is all bits
    then, which are those of a number that are added.
    """

    multiplier: Register
    shifts: tuple[Register, ...]
    sign: Register


def serves(operation: str, dtype: str, lanes: int) -> bool:
    """Whether an operation in lanes is done here, if its divisor is one number."""
    return operation in KNOWN and NUMBERS[dtype].kind == "int" and lanes > 1


def by_multiplying(
    function: Function, block: Block, home: Block, operation: str, number: Register, divisor: Register
) -> Register:
    """What an operation makes of numbers in lanes and a divisor, which is known in its `home`."""
    dtype, lanes = number.dtype, number.lanes
    key = "whole divisor", divisor.text, dtype
    known: _Divisor | None = home.find(key)
    if known is None:
        known = home.known[key] = _prepared(function, home, divisor)
    worked_on = converted(function, block, number, WORKED_ON.get(dtype, dtype))
    quotient = Register(_quotient(function, block, home, worked_on, known), worked_on.dtype, lanes)
    found = converted(function, block, quotient, dtype).text
    code = KNOWN[operation][0 if NUMBERS[dtype].is_signed else 1]
    symbol, result = function.library.called(code, (dtype,) * 3, lanes)
    kind = llvm_type(dtype, lanes)
    everywhere = spread(function, home, divisor, lanes).text
    text = function.new(
        block,
        f"call {llvm_type(result, lanes)} {symbol}({kind} {found}, {kind} {number.text}, {kind} {everywhere})",
    )
    return Register(text, result, lanes)


def _prepared(function: Function, home: Block, divisor: Register) -> _Divisor:
    """Of 0 what is known of 1: it has no quotients."""
    is_byte, dtype = divisor.dtype in WORKED_ON, WORKED_ON.get(divisor.dtype, divisor.dtype)
    divisor = converted(function, home, divisor, dtype)
    bits = 8 * NUMBERS[dtype].size

    def new(expression: str) -> str:
        return function.new(home, expression)

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
        one = new(f"sext i1 {new(f'icmp eq i64 {size}, 1')} to i64")
        return _Divisor(narrow(multiplier), (narrow(one),), Register(sign, dtype))
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
        symbol, _ = function.library.called(divided.next_digits, ("uint64", "uint64"))
        moved = [new(f"shl i64 {one}, {zeros}") for one in (above, size)]
        multiplier = new(f"call i64 {symbol}(i64 {moved[0]}, i64 {new(f'or i64 {moved[1]}, {1 << 63}')})")
    multiplier = new(f"add i64 {multiplier}, 1")
    first = new(f"call i64 @llvm.umin.i64(i64 {length}, i64 1)")
    function.library.declare("llvm.umin.i64", "i64", ["i64", "i64"])
    last = new(f"sub i64 {length}, {first}")
    return _Divisor(narrow(multiplier), (narrow(first), narrow(last)), Register(sign, dtype))


def _quotient(function: Function, block: Block, home: Block, number: Register, known: _Divisor) -> str:
    """The quotient rounded down."""
    dtype, lanes = number.dtype, number.lanes
    if not NUMBERS[dtype].is_signed:
        return _of_size(function, block, home, number, known)
    kind = llvm_type(dtype, lanes)

    def new(expression: str) -> str:
        return function.new(block, expression)

    # Both change their sign where the divisor is negative. The smallest number has no negative, and is one as bits.
    sign = spread(function, home, known.sign, lanes).text
    flipped = new(f"xor {kind} {number.text}, {sign}")
    negative = new(f"icmp slt {kind} {flipped}, {sign}")
    turns = new(f"sext {llvm_type('bool', lanes)} {negative} to {kind}")
    turned = new(f"sub {kind} {flipped}, {sign}")
    size = Register(new(f"xor {kind} {turned}, {turns}"), dtype, lanes)
    return new(f"xor {kind} {_of_size(function, block, home, size, known)}, {turns}")


def _of_size(function: Function, block: Block, home: Block, number: Register, known: _Divisor) -> str:
    """The quotient of numbers without a sign."""
    dtype, lanes = number.dtype, number.lanes
    kind = llvm_type(dtype, lanes)

    def new(expression: str) -> str:
        return function.new(block, expression)

    multiplier, first, *others = (
        spread(function, home, one, lanes).text for one in (known.multiplier, *known.shifts)
    )
    high = _high_half(function, block, number, multiplier)
    if not others:
        return new(f"add {kind} {high}, {new(f'and {kind} {number.text}, {first}')}")
    (last,) = others
    rest = new(f"sub {kind} {number.text}, {high}")
    half = new(f"lshr {kind} {rest}, {first}")
    total = new(f"add {kind} {high}, {half}")
    return new(f"lshr {kind} {total}, {last}")


def _high_half(function: Function, block: Block, number: Register, multiplier: str) -> str:
    """The high half of products."""
    lanes, bits = number.lanes, 8 * NUMBERS[number.dtype].size
    kind = llvm_type(number.dtype, lanes)

    def new(expression: str) -> str:
        return function.new(block, expression)

    if bits < 32:
        wide = f"<{lanes} x i{2 * bits}>"
        one, other = (new(f"zext {kind} {text} to {wide}") for text in (number.text, multiplier))
        product = new(f"mul {wide} {one}, {other}")
        high = new(f"lshr {wide} {product}, {splat(str(bits), f'i{2 * bits}', lanes)}")
        return new(f"trunc {wide} {high} to {kind}")
    if bits == 32:
        # Processors multiply every second one.
        wide = f"<{lanes // 2} x i64>"
        both = [new(f"bitcast {kind} {text} to {wide}") for text in (number.text, multiplier)]
        steps, low = splat("32", "i64", lanes // 2), splat(str((1 << 32) - 1), "i64", lanes // 2)
        even = [new(f"and {wide} {one}, {low}") for one in both]
        odd = [new(f"lshr {wide} {one}, {steps}") for one in both]
        products = [new(f"mul {wide} {one}, {other}") for one, other in (even, odd)]
        below = new(f"lshr {wide} {products[0]}, {steps}")
        above = new(f"and {wide} {products[1]}, {splat(str(-(1 << 32)), 'i64', lanes // 2)}")
        return new(f"bitcast {wide} {new(f'or {wide} {below}, {above}')} to {kind}")
    symbol, _ = function.library.called(divided.high_half, ("uint64", "uint64"), lanes)
    return new(f"call {kind} {symbol}({kind} {number.text}, {kind} {multiplier})")
