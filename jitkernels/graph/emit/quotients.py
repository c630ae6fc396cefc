"""Division of a vector by a number that stays the same through a loop: exact to the last bit, by multiplications.

With y = 1 / b rounded, q = a * y, and the remainder r = a - q * b, the sum q + r * y is the rounded quotient: in whole
steps of one multiplication and two that add, where a processor takes several times as long to divide. That holds while
nothing on the way is out of the normal numbers. Vectors with other elements (zeros too, whose sign would be lost) are
divided.
"""

from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type, suffix
from jitkernels.graph.emit.conversions import splat, spread
from jitkernels.native.language.types import NUMBERS, constant


@dataclass(frozen=True)
class Format:
    """A floating-point type: bits behind the point, the bias of its exponents, and how far from 1 numbers may be.

    For numbers from 2**-d to 2**d, their quotients and all remainders are normal.
    """

    fraction: int
    bias: int
    distance: int


FORMATS = {"float32": Format(23, 127, 62), "float64": Format(52, 1023, 500)}


@dataclass(frozen=True)
class _Divisor:
    """What is known of a divisor in front of the loop; no bits of a numerator are below a `span` of zero."""

    number: str
    inverse: str
    span: str


def is_worth(register: Register) -> bool:
    """Whether a numerator fills vectors of 64 bytes; smaller ones are divided as fast."""
    return register.dtype in FORMATS and register.lanes * NUMBERS[register.dtype].size >= 64


def quotient(
    function: Function, block: Block, home: Block, numerator: Register, divisor: Register
) -> Register:
    """The quotient in a block, in the numerator's lanes. `home`: the block of the divisor, a number."""
    dtype, lanes = numerator.dtype, numerator.lanes
    kind, size = llvm_type(dtype, lanes), 8 * NUMBERS[dtype].size
    key = "divisor", divisor.text, lanes
    known: _Divisor | None = home.find(key)
    if known is None:
        known = home.known[key] = _prepared(function, home, divisor, lanes)

    def new(expression: str) -> str:
        return function.new(block, expression)

    count = 512 // size
    far = _largest(function, block, _distance(function, block, numerator), size, lanes)
    strange = new(f"icmp uge <{count} x i{size}> {far}, {known.span}")
    some = new(f"icmp ne i{count} {new(f'bitcast <{count} x i1> {strange} to i{count}')}, 0")
    place = function.variable(kind)
    near, odd, after = (function.label() for _ in range(3))
    block.lines += [f"  br i1 {some}, label %{odd}, label %{near}, !prof !8", f"{odd}:"]
    block.lines += [f"  store {kind} {new(f'fdiv {kind} {numerator.text}, {known.number}')}, ptr {place}"]
    block.lines += [f"  br label %{after}", f"{near}:"]
    name = f"llvm.fma.{suffix(llvm_type(dtype), lanes)}"
    function.library.declare(name, kind, [kind, kind, kind])
    guess = new(f"fmul {kind} {numerator.text}, {known.inverse}")
    back = new(f"fneg {kind} {guess}")
    rest = new(f"call {kind} @{name}({kind} {back}, {kind} {known.number}, {kind} {numerator.text})")
    found = new(f"call {kind} @{name}({kind} {rest}, {kind} {known.inverse}, {kind} {guess})")
    block.lines += [f"  store {kind} {found}, ptr {place}", f"  br label %{after}", f"{after}:"]
    return Register(new(f"load {kind}, ptr {place}"), dtype, lanes)


def _prepared(function: Function, home: Block, divisor: Register, lanes: int) -> _Divisor:
    """In vectors from the first, which do not wait for one another as flags and other registers do."""
    dtype = divisor.dtype
    form, kind, size = FORMATS[dtype], llvm_type(dtype), 8 * NUMBERS[dtype].size
    count = 512 // size

    def new(expression: str) -> str:
        return function.new(home, expression)

    inverse = Register(new(f"fdiv {kind} {constant(NUMBERS[dtype], 1.0)}, {divisor.text}"), dtype)
    far, number = _distance(function, home, spread(function, home, divisor, count)), f"<{count} x i{size}>"
    span = splat(str(2 * (2 * form.distance << form.fraction)), f"i{size}", count)
    near = new(f"icmp ult {number} {far}, {span}")
    span = new(f"select <{count} x i1> {near}, {number} {span}, {number} zeroinitializer")
    return _Divisor(
        spread(function, home, divisor, lanes).text, spread(function, home, inverse, lanes).text, span
    )


def _distance(function: Function, block: Block, value: Register) -> str:
    """The bits of each number without its sign, counted from the least that may be."""
    form, size = FORMATS[value.dtype], 8 * NUMBERS[value.dtype].size
    number = f"<{value.lanes} x i{size}>"
    bits = function.new(block, f"bitcast {llvm_type(value.dtype, value.lanes)} {value.text} to {number}")
    twice = function.new(block, f"add {number} {bits}, {bits}")
    least = splat(str(2 * (form.bias - form.distance << form.fraction)), f"i{size}", value.lanes)
    return function.new(block, f"sub {number} {twice}, {least}")


def _largest(function: Function, block: Block, text: str, size: int, lanes: int) -> str:
    """Of all parts of a vector the largest whole number in each lane."""
    while lanes * size > 512:
        vector, lanes = f"<{lanes} x i{size}>", lanes // 2
        halves = []
        for first in (0, lanes):
            numbers = ", ".join(f"i32 {first + i}" for i in range(lanes))
            shuffle = f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{numbers}>"
            halves.append(function.new(block, shuffle))
        half, name = f"<{lanes} x i{size}>", f"llvm.umax.v{lanes}i{size}"
        function.library.declare(name, half, [half, half])
        text = function.new(block, f"call {half} @{name}({half} {halves[0]}, {half} {halves[1]})")
    return text
