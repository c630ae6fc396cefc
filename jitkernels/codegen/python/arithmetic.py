"""Arithmetic of the kernel language: casts, operators, comparisons, with Python's and NumPy's semantics."""

import ast
import operator
import reprlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.codegen.python import half_casts, types
from jitkernels.codegen.python.control_statements import ControlFlow
from jitkernels.codegen.python.types import BOOL, FLOAT64, INT64, LITERAL, Type, Value
from jitkernels.codegen.source_protocol import MAX_BITS


def _inverted(number: Any) -> int:
    """``~number`` of a known integer, with bools as ints: Python deprecates ``~True``."""
    return ~operator.index(number)


_PYTHON: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: _inverted,
    ast.Not: operator.not_,
}  # fmt: skip
_BOTH = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}
_COMPARISONS = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}


class Arithmetic(ControlFlow):
    """Emits arithmetic. `flags`: the fast-math flags of every floating-point instruction."""

    flags: Sequence[str] = ()
    lanes = 1
    """Lanes of one register."""
    most_lanes = sys.maxsize
    """The most lanes for which the text is the same but for their number; 0 if it is for these lanes only."""
    has_indices = True
    """Whether int64 sums are indices, which do not wrap (nsw)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.bits: set[str] = set()

    def register(self, kind: Type) -> str:
        """The LLVM type of a register."""
        return types.register(kind, self.lanes)

    def constant(self, kind: Type, number: Any) -> str:
        """LLVM's text of a constant in all lanes."""
        return types.constant(kind, number, self.lanes)

    def floating(self, instruction: str, rest: str) -> str:
        """Emit a floating-point instruction with the function's fast-math flags."""
        return self.new(f"{' '.join((instruction, *self.flags))} {rest}")

    def folded(self, node: ast.AST, kind: type[ast.AST], *numbers: Any) -> Any:
        """Fold an operator of constants in Python."""
        if kind not in _PYTHON:
            raise self.failure(node, "an operator that the language does not have")
        if kind in (ast.Pow, ast.LShift) and abs(numbers[1]) > MAX_BITS:
            raise self.failure(node, "a constant of too many digits")
        try:
            number = _PYTHON[kind](*numbers)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise self.failure(node, f"constants that Python refuses ({error})") from None
        if isinstance(number, complex) or (isinstance(number, int) and number.bit_length() > MAX_BITS):
            raise self.failure(node, "a constant that is complex, or has too many digits")
        return number

    def cast_error(self, value: Value, kind: Type, *, written: bool = False) -> str:
        """The reason why a value cannot be cast to a type; "" if it can."""
        source = value.type
        if source is LITERAL:
            fits = types.holds(kind, value.number, written=written)
            return "" if fits else f"expected {kind.name}, got the number {reprlib.repr(value.number)}"
        if source.kind == kind.kind == "pointer" and kind != types.NONE and None in (source.element, kind.element):
            return ""
        widens = source.kind == kind.kind and source.size < kind.size and (kind.is_signed or not source.is_signed)
        if source == kind or (source.is_number and kind.is_number and (written or widens or source.kind == "bool")):
            return ""
        missing = ": the function returns no value" if source.kind == "nothing" else ""
        return f"expected {kind.name}, got {source.name}{missing}"

    def converted(self, node: ast.AST, value: Value, kind: Type, *, written: bool = False) -> Value:
        """Cast a value. Lossy casts, and casts between ints and floats, must be explicit (`written`)."""
        source = value.type
        why = self.cast_error(value, kind, written=written)
        if why:
            raise self.failure(node, why)
        if source == kind:
            return value
        if source is LITERAL:
            return Value(kind, self.constant(kind, value.number))
        if source.kind == "pointer":
            return Value(kind, value.text)
        if kind.kind == "bool":
            return Value(BOOL, self.nonzero(value))
        if source.llvm == kind.llvm:
            return Value(kind, value.text)
        if source.kind == "float" and kind.kind == "float":
            step = "fpext" if source.size < kind.size else "fptrunc"
            if source.size == kind.size:  # between float16 and bfloat16
                return self.converted(node, self.converted(node, value, types.FLOAT32), kind, written=True)
            if source is FLOAT64 and kind.size == 2:
                return self.converted(node, self.odd(value), kind, written=True)
            if half_casts.is_emulated(kind):
                return Value(kind, half_casts.emit_rounding(self.new, value.text, kind, self.lanes))
            if half_casts.is_emulated(source):
                return self.converted(node, self.widened(value), kind, written=True)
        elif half_casts.is_emulated(source):
            return self.converted(node, self.widened(value), kind, written=True)
        elif source.kind == "float":
            # Out of range: any integer, but the same one for all uses (freeze).
            step = "fptosi" if kind.is_signed else "fptoui"
            result = self.new(f"{step} {self.register(source)} {value.text} to {self.register(kind)}")
            return Value(kind, self.new(f"freeze {self.register(kind)} {result}"))
        else:
            is_signed = source.is_signed and source.kind == "int"
            if half_casts.is_emulated(kind):
                single = self.converted(node, value, types.FLOAT32, written=True)
                return self.converted(node, single, kind, written=True)
            if kind.kind == "float":
                step = "sitofp" if is_signed else "uitofp"
            else:
                wider = source.kind == "bool" or source.size < kind.size
                step = "trunc" if not wider else "sext" if is_signed else "zext"
        return Value(kind, self.new(f"{step} {self.register(source)} {value.text} to {self.register(kind)}"))

    def widened(self, value: Value) -> Value:
        """Extend a number of an emulated type to float32."""
        return Value(types.FLOAT32, half_casts.emit_widening(self.new, value.text, value.type, self.lanes))

    def odd(self, value: Value) -> Value:
        """Round a float64 to an adjacent odd float32 if it is inexact, so that a second rounding does not round twice.

        Few processors have an instruction that rounds to half precision directly; elsewhere LLVM would call a
        function.
        """
        double, single, bit, whole = map(self.register, (FLOAT64, types.FLOAT32, BOOL, types.NUMBERS["int32"]))
        near = self.new(f"fptrunc {double} {value.text} to {single}")
        back = self.new(f"fpext {single} {near} to {double}")
        bits = self.new(f"bitcast {single} {near} to {whole}")
        positive = self.new(f"fcmp ogt {double} {value.text}, {self.constant(FLOAT64, 0)}")
        above, below = (self.new(f"fcmp {sign} {double} {back}, {value.text}") for sign in ("ogt", "olt"))
        larger = self.new(f"select {bit} {positive}, {bit} {above}, {bit} {below}")
        one = self.new(f"zext {bit} {larger} to {whole}")
        cut = self.new(f"sub {whole} {bits}, {one}")
        differs = self.new(f"fcmp one {double} {back}, {value.text}")
        last = self.new(f"zext {bit} {differs} to {whole}")
        made = self.new(f"or {whole} {cut}, {last}")
        return Value(types.FLOAT32, self.new(f"bitcast {whole} {made} to {single}"))

    def nonzero(self, value: Value) -> str:
        """Return whether a number is not zero, as an i1."""
        kind = value.type
        if kind.kind == "bool":
            return value.text
        if half_casts.is_emulated(kind):
            return self.nonzero(self.widened(value))
        if kind.kind == "float":
            return self.floating("fcmp", f"une {self.register(kind)} {value.text}, {self.constant(kind, 0)}")
        return self.new(f"icmp ne {self.register(kind)} {value.text}, {self.constant(kind, 0)}")

    def together(self, node: ast.AST, left: Value, right: Value) -> tuple[Type, Value, Value]:
        """Cast two numbers to their common type."""
        kind = self.agreed(node, left, right)
        return kind, self.converted(node, left, kind), self.converted(node, right, kind)

    def agreed(self, node: ast.AST, left: Value, right: Value) -> Type:
        """The common type of two numbers."""
        if not (left.type.is_number and right.type.is_number):
            raise self.failure(node, f"expected numbers, got {left.type.name} and {right.type.name}")
        kind = types.common(left, right)
        if kind is None:
            named = [repr(v.number) if v.type is LITERAL else v.type.name for v in (left, right)]
            raise self.failure(
                node, f"{named[0]} beside {named[1]}: say which is meant, as in np.float32(x) or np.int64(x)"
            )
        return kind

    def binary(self, node: ast.AST, sign: ast.operator, one: Value, other: Value) -> Value:
        """Emit ``one sign other``."""
        kind, left, right = self.together(node, one, other)
        if isinstance(sign, ast.Div) and kind.kind != "float":
            raise self.failure(node, "'/' is for floating-point numbers; integers have '//'")
        if kind is BOOL and type(sign) not in _BITS:
            kind = INT64
            left, right = self.converted(node, left, kind), self.converted(node, right, kind)
        if half_casts.is_emulated(kind):
            singles = [self.converted(node, side, types.FLOAT32) for side in (left, right)]
            return self.converted(node, self.binary(node, sign, *singles), kind, written=True)
        operands = f"{self.register(kind)} {left.text}, {right.text}"
        match kind.kind, type(sign):
            case "float", sort if sort in _BOTH:
                return Value(kind, self.floating(f"f{_BOTH[sort]}", operands))
            case "float", ast.Div:
                return Value(kind, self.floating("fdiv", operands))
            case "int", sort if sort in _BOTH:
                # As for C's indices: LLVM knows how far a loop runs only where 64-bit sums do not wrap.
                # What was just shifted to the left is bits, no index.
                wraps = (
                    "" if kind is not INT64 or not self.has_indices or {left.text, right.text} & self.bits else " nsw"
                )
                return Value(kind, self.new(f"{_BOTH[sort]}{wraps} {operands}"))
            case "int", (ast.FloorDiv | ast.Mod) as sort:
                return self.divided(kind, sort is ast.Mod, left, right, other)
            case "int", (ast.LShift | ast.RShift) as sort:
                moved = self.shifted(kind, sort is ast.LShift, left.text, right.text)
                if sort is ast.LShift:
                    self.bits.add(moved)
                return Value(kind, moved)
            case (("int" | "bool"), sort) if sort in _BITS:
                return Value(kind, self.new(f"{_BITS[sort]} {operands}"))
        cure = "; write products, as in x * x" if isinstance(sign, ast.Pow) else ""
        raise self.failure(node, f"an operator that the language does not have for {kind.name}{cure}")

    def shifted(self, kind: Type, is_left: bool, value: str, steps: str) -> str:
        """Emit a shift. As in NumPy, counts that are negative or too large leave nothing but the sign."""
        step = "shl" if is_left else "ashr" if kind.is_signed else "lshr"
        count = 8 * kind.size
        llvm, bit = self.register(kind), self.register(BOOL)
        known = types.one_of(kind, steps)
        if not (known.isdigit() and int(known) < count):
            few = self.new(f"icmp ult {llvm} {steps}, {self.constant(kind, count)}")
            if step != "ashr":
                result = self.new(f"{step} {llvm} {value}, {steps}")
                return self.new(f"select {bit} {few}, {llvm} {result}, {llvm} {self.constant(kind, 0)}")
            steps = self.new(f"select {bit} {few}, {llvm} {steps}, {llvm} {self.constant(kind, count - 1)}")
        return self.new(f"{step} {llvm} {value}, {steps}")

    def divided(self, kind: Type, remains: bool, left: Value, right: Value, divisor: Value) -> Value:
        """Emit a floor quotient or its remainder. Division by 0 gives 0, as in NumPy, and no signal."""
        llvm, bit, no, one = (self.register(kind), self.register(BOOL), self.constant(kind, 0), self.constant(kind, 1))
        if not kind.is_signed:
            zero = self.new(f"icmp eq {llvm} {right.text}, {no}")
            safe = self.new(f"select {bit} {zero}, {llvm} {one}, {llvm} {right.text}")
            result = self.truncated(kind, left.text, safe, divisor, remains=remains)
            return Value(kind, self.new(f"select {bit} {zero}, {llvm} {no}, {llvm} {result}"))
        known = divisor.number if divisor.type is LITERAL else None
        if isinstance(known, int) and known > 0 and known & (known - 1) == 0:
            if remains:
                return Value(kind, self.new(f"and {llvm} {left.text}, {self.constant(kind, known - 1)}"))
            return Value(kind, self.new(f"ashr {llvm} {left.text}, {self.constant(kind, known.bit_length() - 1)}"))
        # Dividing the least integer by -1 would trap as well: neither 0 nor -1 reaches the instruction.
        next_to = self.new(f"add {llvm} {right.text}, {one}")
        traps = self.new(f"icmp ult {llvm} {next_to}, {self.constant(kind, 2)}")
        safe = self.new(f"select {bit} {traps}, {llvm} {one}, {llvm} {right.text}")
        quotient = self.truncated(kind, left.text, safe, divisor)
        product = self.new(f"mul {llvm} {quotient}, {safe}")
        rest = self.new(f"sub {llvm} {left.text}, {product}")
        apart = self.new(f"xor {llvm} {rest}, {safe}")
        below = self.new(f"icmp slt {llvm} {apart}, {no}")
        some = self.new(f"icmp ne {llvm} {rest}, {no}")
        corrects = self.new(f"and {bit} {below}, {some}")
        if remains:
            more = self.new(f"add {llvm} {rest}, {safe}")
            result = self.new(f"select {bit} {corrects}, {llvm} {more}, {llvm} {rest}")
            return Value(kind, self.new(f"select {bit} {traps}, {llvm} {no}, {llvm} {result}"))
        less = self.new(f"zext {bit} {corrects} to {llvm}")
        result = self.new(f"sub {llvm} {quotient}, {less}")
        negative = self.new(f"mul {llvm} {left.text}, {right.text}")  # by 0 or -1
        return Value(kind, self.new(f"select {bit} {traps}, {llvm} {negative}, {llvm} {result}"))

    def truncated(self, kind: Type, left: str, right: str, divisor: Value, *, remains: bool = False) -> str:  # noqa: ARG002
        """Emit a truncating quotient or remainder; the divisor does not trap, `divisor` is its source expression."""
        step = ("s" if kind.is_signed else "u") + ("rem" if remains else "div")
        return self.new(f"{step} {self.register(kind)} {left}, {right}")

    def compared(self, node: ast.AST, sign: ast.cmpop, one: Value, other: Value) -> str:
        """Emit a comparison as an i1; comparisons with NaN are false, except ``!=``."""
        if type(sign) not in _COMPARISONS:
            raise self.failure(node, "a comparison that is not in the language")
        kind, left, right = self.together(node, one, other)
        if half_casts.is_emulated(kind):
            return self.compared(node, sign, self.widened(left), self.widened(right))
        name = _COMPARISONS[type(sign)]
        operands = f"{self.register(kind)} {left.text}, {right.text}"
        if kind.kind == "float":
            return self.floating("fcmp", f"{'une' if name == 'ne' else 'o' + name} {operands}")
        if name not in ("eq", "ne"):
            name = ("s" if kind.is_signed and kind.kind == "int" else "u") + name
        return self.new(f"icmp {name} {operands}")

    def unary(self, node: ast.AST, sign: ast.unaryop, value: Value) -> Value:
        """Emit ``-value``, ``+value``, ``~value``."""
        kind = value.type
        match sign:
            case ast.USub() if kind.kind == "float":
                return Value(kind, self.floating("fneg", f"{self.register(kind)} {value.text}"))
            case ast.USub() if kind.kind == "int":
                return Value(kind, self.new(f"sub {self.register(kind)} {self.constant(kind, 0)}, {value.text}"))
            case ast.UAdd() if kind.kind in ("int", "float"):
                return value
            case ast.Invert() if kind.kind in ("int", "bool"):
                ones = self.constant(kind, -1)
                return Value(kind, self.new(f"xor {self.register(kind)} {value.text}, {ones}"))
        raise self.failure(node, f"an operator that the language does not have for {kind.name}")

    def extreme(self, node: ast.AST, name: str, one: Value, other: Value) -> Value:
        """Emit Python's ``min`` and ``max``: the first unless the second is smaller, or larger."""
        kind, left, right = self.together(node, one, other)
        sign = ast.Lt() if name == "min" else ast.Gt()
        bit = self.compared(node, sign, right, left)
        return Value(kind, self.either(kind, bit, right.text, left.text))

    def either(self, kind: Type, bit: str, yes: str, no: str) -> str:
        """Emit a select."""
        llvm = self.register(kind)
        return self.new(f"select {self.register(BOOL)} {bit}, {llvm} {yes}, {llvm} {no}")

    def seen_as(self, node: ast.AST, value: Value, kind: Type) -> Value:
        """Emit a bitcast to another type of the same size."""
        numbers = value.type.kind in ("int", "float") and kind.kind in ("int", "float")
        if not numbers or value.type.size != kind.size:
            raise self.failure(node, f"view of {value.type.name} as {kind.name}: expected as many bits")
        if value.type.llvm == kind.llvm:
            return Value(kind, value.text)
        return Value(kind, self.new(f"bitcast {self.register(value.type)} {value.text} to {self.register(kind)}"))
