"""Division of a vector by a sum of its row: by two multiplications, where a processor takes several times as long.

Of 1 / b come a first part, a little nearer to zero, and the small rest: a * first + (a * rest), added to before it is
rounded. That is the rounded quotient but for one of a million, where that lies as near to the middle of two numbers as
the rest is rounded; what is a number without rounding comes out as it. Of subnormal quotients, which have few bits,
those in the middle of two numbers may be rounded to the other one. Both parts have the sign of b, so that zeros
keep their sign and infinities stay. As sums of floats are rounded themselves, nothing can hang on that last bit.
"""

from collections.abc import Container
from dataclasses import dataclass

from jitkernels import machine
from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type, suffix
from jitkernels.graph.emit.conversions import splat, spread
from jitkernels.graph.ir import Node
from jitkernels.native.language.types import NUMBERS, constant


@dataclass(frozen=True)
class _Divisor:
    """What is known of divisors in front of the loop; `near` is whether both parts of all are normal numbers."""

    first: Register
    rest: Register
    near: str


DISTANCE = {"float32": 100, "float64": 900}
"""Divisors from 2**-d to 2**d have parts that are normal numbers."""
BITS = {"float32": 23, "float64": 52}


def is_possible() -> bool:
    """Whether the processor multiplies and adds at once."""
    return machine.target().fuses


def is_of_sums(node: Node, kept: Container[int]) -> bool:
    """Whether a node is a quotient of a sum of floats, or by one, looking at nothing behind what is kept."""
    stack, seen = [*node.inputs] if node.operation == "divide" and node.dtype in BITS else [], set()
    while stack:
        one = stack.pop()
        if id(one) in seen or id(one) in kept:
            continue
        seen.add(id(one))
        if one.operation == "reduce" and one.options["kind"] == "sum" and one.dtype in BITS:
            return True
        stack += one.inputs
    return False


def quotient(
    function: Function, block: Block, home: Block, numerator: Register, divisor: Register
) -> Register:
    """The quotient in a block, in the numerator's lanes; the divisor, of fewer lanes, is known in its `home`."""
    dtype, lanes = numerator.dtype, numerator.lanes
    kind = llvm_type(dtype, lanes)
    key = "divisor", divisor.text
    known: _Divisor | None = home.find(key)
    if known is None:
        known = home.known[key] = _prepared(function, home, divisor)
    below, first, rest = (
        spread(function, home, one, lanes).text for one in (divisor, known.first, known.rest)
    )

    def new(expression: str) -> str:
        return function.new(block, expression)

    place = function.variable(kind)
    near, far, after = (function.label() for _ in range(3))
    block.lines += [f"  br i1 {known.near}, label %{near}, label %{far}, !prof !7", f"{far}:"]
    divided = new(f"fdiv {kind} {numerator.text}, {below}")
    block.lines += [f"  store {kind} {divided}, ptr {place}", f"  br label %{after}", f"{near}:"]
    small = new(f"fmul {kind} {numerator.text}, {rest}")
    found = _fma(function, block, Register(numerator.text, dtype, lanes), first, small)
    block.lines += [f"  store {kind} {found}, ptr {place}", f"  br label %{after}", f"{after}:"]
    return Register(new(f"load {kind}, ptr {place}"), dtype, lanes)


def _prepared(function: Function, home: Block, divisor: Register) -> _Divisor:
    dtype, lanes = divisor.dtype, divisor.lanes
    sort, kind = NUMBERS[dtype], llvm_type(dtype, lanes)

    def new(expression: str) -> str:
        return function.new(home, expression)

    def number(value: float) -> str:
        return splat(constant(sort, value), llvm_type(dtype), lanes)

    first = new(f"fdiv {kind} {number(1 - 2.0 ** -BITS[dtype])}, {divisor.text}")
    back = Register(new(f"fneg {kind} {first}"), dtype, lanes)
    left = _fma(function, home, back, divisor.text, number(1.0))
    rest = new(f"fmul {kind} {left}, {first}")
    return _Divisor(
        Register(first, dtype, lanes), Register(rest, dtype, lanes), _near(function, home, divisor)
    )


def _near(function: Function, home: Block, divisor: Register) -> str:
    """Whether divisors are near to 1, by vectors: flags of a single comparison take long."""
    dtype = divisor.dtype
    wide = spread(function, home, divisor, max(divisor.lanes, 4))
    kind, lanes = llvm_type(dtype, wide.lanes), wide.lanes

    def new(expression: str) -> str:
        return function.new(home, expression)

    def number(value: float) -> str:
        return splat(constant(NUMBERS[dtype], value), llvm_type(dtype), lanes)

    name = f"llvm.fabs.{suffix(llvm_type(dtype), lanes)}"
    function.library.declare(name, kind, [kind])
    size = new(f"call {kind} @{name}({kind} {wide.text})")
    above = new(f"fcmp oge {kind} {size}, {number(2.0 ** -DISTANCE[dtype])}")
    below = new(f"fcmp ole {kind} {size}, {number(2.0 ** DISTANCE[dtype])}")
    near = new(f"and {llvm_type('bool', lanes)} {above}, {below}")
    return new(f"icmp eq i{lanes} {new(f'bitcast <{lanes} x i1> {near} to i{lanes}')}, -1")


def _fma(function: Function, block: Block, one: Register, other: str, more: str) -> str:
    kind = llvm_type(one.dtype, one.lanes)
    name = f"llvm.fma.{suffix(llvm_type(one.dtype), one.lanes)}"
    function.library.declare(name, kind, [kind, kind, kind])
    return function.new(block, f"call {kind} @{name}({kind} {one.text}, {kind} {other}, {kind} {more})")
