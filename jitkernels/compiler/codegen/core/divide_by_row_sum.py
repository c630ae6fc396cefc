"""Division of a row by its sum: two multiplications by a double-word reciprocal instead of a vector division.

1 / b is a high part, rounded towards zero, plus a small rest; the quotient is fma(a, high, a * rest). It differs from
the correctly rounded quotient for about one in a million, where that lies as near to a rounding midpoint as the
rest's own error; exact quotients are exact. Subnormal quotients at a midpoint may round to the other neighbour. Both
parts have the sign of b, so that zeros keep their sign and infinities stay. Float sums are rounded themselves, so
nothing can depend on that last bit.
"""

from collections.abc import Container
from dataclasses import dataclass
from functools import partial

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core.casts import broadcast, splat
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Register, llvm_type, suffix
from jitkernels.compiler.ir.graph import Node
from jitkernels.core import cpu_target


@dataclass(frozen=True)
class _RowSumDivisor:
    """Loop-invariant reciprocals; `near`: whether both parts of all of them are normal numbers."""

    first: Register
    rest: Register
    near: str


DISTANCE = {"float32": 100, "float64": 900}
"""Divisors from 2**-d to 2**d have reciprocals whose two parts are normal numbers."""
BITS = {"float32": 23, "float64": 52}


def has_fma() -> bool:
    """Return whether the processor has fused multiply-add."""
    return cpu_target.target().fuses


def divides_sums(node: Node, materialized: Container[Node]) -> bool:
    """Return whether a node divides a sum of floats or divides by one, looking no further than materialized nodes."""
    stack, seen = [*node.inputs] if node.operation == "divide" and node.dtype in BITS else [], set()
    while stack:
        current = stack.pop()
        if current in seen or current in materialized:
            continue
        seen.add(current)
        if current.operation == "reduce" and current.options["kind"] == "sum" and current.dtype in BITS:
            return True
        stack += current.inputs
    return False


def quotient(function: FunctionBuilder, block: Block, home: Block, numerator: Register, divisor: Register) -> Register:
    """Divide `numerator` by `divisor`, which has fewer lanes and whose reciprocal is computed in block `home`."""
    dtype, lanes = numerator.dtype, numerator.lanes
    kind = llvm_type(dtype, lanes)
    key = "divisor", divisor.text
    reciprocal: _RowSumDivisor | None = home.find(key)
    if reciprocal is None:
        reciprocal = home.known[key] = _reciprocal(function, home, divisor)
    splat_divisor, first, rest = (
        broadcast(function, home, scalar, lanes).text for scalar in (divisor, reciprocal.first, reciprocal.rest)
    )
    new = partial(function.new, block)
    slot = function.variable(kind)
    fast, slow, after = (function.label() for _ in range(3))
    block.lines += [f"  br i1 {reciprocal.near}, label %{fast}, label %{slow}, !prof !7", f"{slow}:"]
    divided = new(f"fdiv {kind} {numerator.text}, {splat_divisor}")
    block.lines += [f"  store {kind} {divided}, ptr {slot}", f"  br label %{after}", f"{fast}:"]
    small = new(f"fmul {kind} {numerator.text}, {rest}")
    fused = _fma(function, block, Register(numerator.text, dtype, lanes), first, small)
    block.lines += [f"  store {kind} {fused}, ptr {slot}", f"  br label %{after}", f"{after}:"]
    return Register(new(f"load {kind}, ptr {slot}"), dtype, lanes)


def _reciprocal(function: FunctionBuilder, home: Block, divisor: Register) -> _RowSumDivisor:
    dtype, lanes = divisor.dtype, divisor.lanes
    sort, kind = NUMBERS[dtype], llvm_type(dtype, lanes)
    new = partial(function.new, home)

    def number(value: float) -> str:
        return splat(constant(sort, value), llvm_type(dtype), lanes)

    first = new(f"fdiv {kind} {number(1 - 2.0 ** -BITS[dtype])}, {divisor.text}")
    negated = Register(new(f"fneg {kind} {first}"), dtype, lanes)
    residual = _fma(function, home, negated, divisor.text, number(1.0))
    rest = new(f"fmul {kind} {residual}, {first}")
    return _RowSumDivisor(
        Register(first, dtype, lanes), Register(rest, dtype, lanes), _all_in_range(function, home, divisor)
    )


def _all_in_range(function: FunctionBuilder, home: Block, divisor: Register) -> str:
    """Return whether all divisors are in range, by vector comparisons: scalar comparison flags take long."""
    dtype = divisor.dtype
    wide = broadcast(function, home, divisor, max(divisor.lanes, 4))
    kind, lanes = llvm_type(dtype, wide.lanes), wide.lanes
    new = partial(function.new, home)

    def number(value: float) -> str:
        return splat(constant(NUMBERS[dtype], value), llvm_type(dtype), lanes)

    name = f"llvm.fabs.{suffix(llvm_type(dtype), lanes)}"
    function.library.declare(name, kind, [kind])
    size = new(f"call {kind} @{name}({kind} {wide.text})")
    above = new(f"fcmp oge {kind} {size}, {number(2.0 ** -DISTANCE[dtype])}")
    below = new(f"fcmp ole {kind} {size}, {number(2.0 ** DISTANCE[dtype])}")
    near = new(f"and {llvm_type('bool', lanes)} {above}, {below}")
    return new(f"icmp eq i{lanes} {new(f'bitcast <{lanes} x i1> {near} to i{lanes}')}, -1")


def _fma(function: FunctionBuilder, block: Block, left: Register, right: str, addend: str) -> str:
    kind = llvm_type(left.dtype, left.lanes)
    name = f"llvm.fma.{suffix(llvm_type(left.dtype), left.lanes)}"
    function.library.declare(name, kind, [kind, kind, kind])
    return function.new(block, f"call {kind} @{name}({kind} {left.text}, {kind} {right}, {kind} {addend})")
