"""SIMD functions of the kernel language: every register holds one number per lane.

Lanes cannot diverge. So both sides of a conditional are computed and selected per lane (if-conversion), and the body
of an ``if`` runs if any lane needs it, and changes variables only in the lanes that do.
"""

import ast
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.codegen.python import masked_outlined_calls, types
from jitkernels.codegen.python.function_writer import FunctionWriter
from jitkernels.codegen.python.types import BOOL, INT64, Type, Value
from jitkernels.codegen.source_protocol import COLD, NOINLINE, External, IRFunction
from jitkernels.core import cpu_target

MAX_WIDENED_INT_BYTES = 4
"""Bytes of the widest integers for which floats have twice as many bits."""


class ElementWriter(FunctionWriter):
    """Emits a function of elements, none of which is an index: int64 sums wrap, as those of arrays do."""

    has_indices = False

    def construct(self, node: ast.AST, kind: type, fields: tuple[str, ...], values: Sequence[Value]) -> Value:  # noqa: ARG002
        raise self.failure(node, "structs are of range kernels alone")


class LaneWriter(ElementWriter):
    """Emits one function for some lanes."""

    def __init__(
        self, program: Any, function: Callable[..., Any], arguments: Sequence[Value], flags: Sequence[str], lanes: int
    ) -> None:
        self.lanes, self.bit, self.mask = lanes, types.register(BOOL, lanes), ""
        super().__init__(program, function, arguments, flags)

    # Conditions: bits of all lanes.

    def truth(self, node: ast.expr) -> str:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.inverted(self.truth(operand))
            case ast.BoolOp(op=sign, values=values):
                step = "or" if isinstance(sign, ast.Or) else "and"
                bit = self.truth(values[0])
                for value in values[1:]:
                    bit = self.new(f"{step} {self.bit} {bit}, {self.truth(value)}")
                return bit
        return super().truth(node)

    def inverted(self, bit: str) -> str:
        return self.new(f"xor {self.bit} {bit}, {self.constant(BOOL, True)}")

    def chain(self, node: ast.Compare) -> str:
        values = [self.value(comparator) for comparator in (node.left, *node.comparators)]
        bits = [
            self.compared(node, sign, *pair) for sign, pair in zip(node.ops, itertools.pairwise(values), strict=True)
        ]
        whole = bits[0]
        for bit in bits[1:]:
            whole = self.new(f"and {self.bit} {whole}, {bit}")
        return whole

    # Integers are divided as floats: there are no other instructions for vectors.

    def truncated(self, kind: Type, left: str, right: str, divisor: Value, *, remains: bool = False) -> str:
        has_floats = kind.size <= MAX_WIDENED_INT_BYTES or "avx512dq" in cpu_target.target().features
        if divisor.type is types.LITERAL or not has_floats:
            return super().truncated(kind, left, right, divisor, remains=remains)
        find = self.by_rounding if kind.size <= MAX_WIDENED_INT_BYTES else self.in_two_steps
        result = find(kind, left, right)
        if not remains:
            return result
        llvm = self.register(kind)
        product = self.new(f"mul {llvm} {result}, {right}")
        return self.new(f"sub {llvm} {left}, {product}")

    def by_rounding(self, kind: Type, left: str, right: str) -> str:
        """Divide integers by floats of twice as many bits.

        An inexact quotient differs from the next integer by a share of 1 / left or more, which exceeds the rounding
        error.
        """
        llvm = self.register(kind)
        wide = self.register(types.FLOAT32 if kind.size < MAX_WIDENED_INT_BYTES else types.FLOAT64)
        sign = "s" if kind.is_signed else "u"
        numbers = [self.new(f"{sign}itofp {llvm} {operand} to {wide}") for operand in (left, right)]
        quotient = self.new(f"fdiv {wide} {', '.join(numbers)}")
        if kind.size == MAX_WIDENED_INT_BYTES:
            return self.new(f"fpto{sign}i {wide} {quotient} to {llvm}")
        number = self.register(types.NUMBERS["int32"])
        result = self.new(f"fptosi {wide} {quotient} to {number}")
        return self.new(f"trunc {number} {result} to {llvm}")

    def in_two_steps(self, kind: Type, left: str, right: str) -> str:
        """Divide 64-bit integers by float64: a quotient, and another one of the remainder.

        The reciprocal is too small by 2**-50, twice the rounding errors, so that neither quotient is too large: the
        remainder after both is less than twice the divisor. Divisors of 64 bits have a quotient of 0 or 1.
        """
        llvm, wide = self.register(kind), self.register(types.FLOAT64)
        sizes = left, right
        if kind.is_signed:
            turns = [self.new(f"ashr {llvm} {one}, {self.constant(kind, 63)}") for one in (left, right)]
            pairs = [*zip((left, right), turns, strict=True)]
            flipped = [self.new(f"xor {llvm} {one}, {turn}") for one, turn in pairs]
            pairs = [*zip(flipped, turns, strict=True)]
            one, other = [self.new(f"sub {llvm} {number}, {turn}") for number, turn in pairs]
            sizes = one, other
        size, divisor = sizes
        close = self.new(f"uitofp {llvm} {divisor} to {wide}")
        reciprocal = self.new(f"fdiv {wide} {self.constant(types.FLOAT64, 1 - 2.0**-50)}, {close}")
        rest, parts = size, []
        for _ in range(2):
            quotient = self.new(f"fmul {wide} {self.new(f'uitofp {llvm} {rest} to {wide}')}, {reciprocal}")
            parts.append(self.new(f"fptoui {wide} {quotient} to {llvm}"))
            rest = self.new(f"sub {llvm} {rest}, {self.new(f'mul {llvm} {parts[-1]}, {divisor}')}")
        result = self.new(f"add {llvm} {parts[0]}, {parts[1]}")
        again, once = (
            self.new(f"zext {self.bit} {self.new(f'icmp uge {llvm} {one}, {divisor}')} to {llvm}")
            for one in (rest, size)
        )
        result = self.new(f"add {llvm} {result}, {again}")
        is_long = self.new(f"icmp slt {llvm} {divisor}, {self.constant(kind, 0)}")
        result = self.either(kind, is_long, once, result)
        if not kind.is_signed:
            return result
        turn = self.new(f"xor {llvm} {turns[0]}, {turns[1]}")
        return self.new(f"sub {llvm} {self.new(f'xor {llvm} {result}, {turn}')}, {turn}")

    # Choices: of values that are all computed.

    def first_of(self, node: ast.AST, ends: bool, values: Sequence[ast.expr]) -> Value:
        one = self.value(values[0])
        if len(values) == 1:
            return one
        rest = self.first_of(node, ends, values[1:])
        if one.type is types.LITERAL:
            return one if bool(one.number) is ends else rest
        bit = self.condition(values[0], one)
        return self.selected(node, bit, *((one, rest) if ends else (rest, one)))

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        decided = self.decided(test)
        if decided is not None:
            return self.value(body if decided else orelse)
        bit = self.truth(test)
        return self.selected(test, bit, self.value(body), self.value(orelse))

    def selected(self, node: ast.AST, bit: str, one: Value, other: Value) -> Value:
        if len(one.parts) != len(other.parts):
            raise self.failure(node, f"a choice between {one.type.name} and {other.type.name}")
        results = []
        for pair in zip(one.parts or (one,), other.parts or (other,), strict=True):
            kind, left, right = self.together(node, *pair)
            results.append(Value(kind, self.either(kind, bit, left.text, right.text)))
        if not one.parts:
            return results[0]
        return Value(types.tuple_of(tuple(part.type for part in results)), parts=tuple(results))

    def choice(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        decided = self.decided(test)
        if decided is not None:
            self.statements(body if decided else orelse)
            return
        bit = self.truth(test)
        self.masked(bit, body, is_rare=not orelse)
        if orelse:
            self.masked(self.inverted(bit), orelse)

    def masked(self, bit: str, body: Sequence[ast.stmt], *, is_rare: bool = False) -> None:
        """Emit statements that change variables in the active lanes, skipped if there is none."""
        outer_mask = self.mask
        mask = self.new(f"and {self.bit} {outer_mask}, {bit}") if outer_mask else bit
        reduction = f"llvm.vector.reduce.or.v{self.lanes}i1"
        self.program.declare(reduction, "i1", [self.bit])
        some = self.new(f"call i1 @{reduction}({self.bit} {mask})")
        if is_rare:
            self.program.declare("llvm.expect.i1", "i1", ["i1", "i1"])
            some = self.new(f"call i1 @llvm.expect.i1(i1 {some}, i1 false)")
        inside, after = self.label(), self.label()
        self.lines.append(f"  br i1 {some}, label %{inside}, label %{after}")
        self.start(inside)
        before = {name: self.new(self.loaded(name)) for name in stored(body) if name in self.variables}
        self.mask = mask
        self.statements(body)
        self.mask = outer_mask
        for name in stored(body):
            kind = self.variables[name]
            old = before.get(name, "zeroinitializer")  # uninitialized variables are 0
            merged = self.either(kind, mask, self.new(self.loaded(name)), old)
            self.lines.append(f'  store {self.register(kind)} {merged}, ptr %"{name}.at"')
        self.jump(after)
        self.start(after)

    def loaded(self, name: str) -> str:
        return f'load {self.register(self.variables[name])}, ptr %"{name}.at"'

    # What all lanes do together, or none.

    def statement(self, node: ast.stmt) -> None:
        if self.mask and isinstance(node, ast.Return | ast.Break | ast.Continue):
            raise self.failure(node, "some lanes would leave here and others not: expected assignments alone")
        super().statement(node)

    def loop(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:  # noqa: ARG002
        if self.decided(test) is not False:
            raise self.failure(test, "a loop that each lane would leave on its own: expected range(constant)")

    def index(self, node: ast.expr) -> str:
        number = self.known(node)
        if not isinstance(number, int):
            raise self.failure(node, "a limit that differs by lane: expected a constant")
        return str(int(number))

    def write(self, node: ast.AST, name: str, value: Value) -> None:
        if isinstance(node, ast.For):  # the induction variable is scalar
            first = self.new(f"insertelement {self.register(INT64)} poison, i64 {value.text}, i64 0")
            shuffle = f"{self.register(INT64)} poison, <{self.lanes} x i32> zeroinitializer"
            value = Value(INT64, self.new(f"shufflevector {self.register(INT64)} {first}, {shuffle}"))
        super().write(node, name, value)

    def in_vectors(self, node: ast.For, name: str, limits: Sequence[ast.expr]) -> None:  # noqa: ARG002
        raise self.failure(node, "lanes inside of lanes: expected range(constant)")

    def external(self, node: ast.AST, found: External | IRFunction, values: Sequence[Value]) -> Value:  # noqa: ARG002
        raise self.failure(node, f"{found.symbol} takes one number, not {self.lanes} lanes")

    # Outlined functions: by way of memory, lane by lane or vector by vector.

    def marked(self, node: ast.AST, found: Callable[..., Any], values: Sequence[Value]) -> Value:
        flags = found.fastmath  # type: ignore[attr-defined]  # set by `inlined`
        if NOINLINE not in flags and COLD not in flags:
            return super().marked(node, found, values)
        return self.in_memory(*self.translate_callee(node, found, values))

    def outlined_call(self, function: Callable[..., Any], arguments: Sequence[Value]) -> tuple[Type, str]:
        """Return the result type and the instructions of a function that only calls an outlined one."""
        symbol, result = self.program.called(function, tuple(arguments))
        whole = self.whole(self.tree, self.in_memory(symbol, result, arguments), result)
        self.lines.append(f"  ret {self.register(result)} {whole}")
        return result, "\n".join([*self.entry, *self.lines])

    def in_memory(self, symbol: str, result: Type, arguments: Sequence[Value]) -> Value:
        """Emit a call of an outlined function for the active lanes."""
        bits, word = self.mask or self.constant(BOOL, True), f"i{max(self.lanes, masked_outlined_calls.MASK)}"
        active = self.new(f"bitcast {self.bit} {bits} to i{self.lanes}")
        if self.lanes < masked_outlined_calls.MASK:
            active = self.new(f"zext i{self.lanes} {active} to {word}")
        self.most_lanes = min(
            self.most_lanes, masked_outlined_calls.MASK - 1 if self.lanes < masked_outlined_calls.MASK else 0
        )
        passed = [f"ptr {self.stored_at(word, active)}", f"i64 {self.lanes}"]
        for value in arguments:
            memory_type = masked_outlined_calls.memory(value.type, self.lanes)
            text = value.text
            if value.type == BOOL:
                text = self.new(f"zext {self.register(BOOL)} {text} to {memory_type}")
            passed.append(f"ptr {self.stored_at(memory_type, text)}")
        kinds = result.parts or (result,)
        result_slots = [
            self.stored_at(masked_outlined_calls.memory(kind, self.lanes), "zeroinitializer") for kind in kinds
        ]
        self.lines.append(f"  call void {symbol}({', '.join([*passed, *(f'ptr {slot}' for slot in result_slots)])})")
        parts = []
        for kind, slot in zip(kinds, result_slots, strict=True):
            text = self.new(f"load {masked_outlined_calls.memory(kind, self.lanes)}, ptr {slot}")
            if kind == BOOL:
                text = self.new(
                    f"trunc {masked_outlined_calls.memory(kind, self.lanes)} {text} to {self.register(BOOL)}"
                )
            parts.append(Value(kind, text))
        return Value(result, parts=tuple(parts)) if result.parts else parts[0]

    def stored_at(self, kind: str, text: str) -> str:
        """Store a value to a new alloca; return its address."""
        slot = self.memory(kind)
        self.lines.append(f"  store {kind} {text}, ptr {slot}")
        return slot


def stored(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """The variables that statements assign."""
    results = [node for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return tuple(dict.fromkeys(node.id for node in results if isinstance(node.ctx, ast.Store)))
