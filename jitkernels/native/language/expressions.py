"""Names, elements and choices in the language of loop nests."""

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.native.language import types
from jitkernels.native.language.arithmetic import Arithmetic
from jitkernels.native.language.types import INT64, Type, Value


class Expressions(Arithmetic):
    """Writes expressions. `around`: what stands around the function by name; `variables`: the types of its own."""

    around: Mapping[str, Any]
    variables: dict[str, Type]

    @abstractmethod
    def calling(self, node: ast.Call, function: ast.expr, arguments: Sequence[ast.expr]) -> Value:
        """Write a call."""

    def place(self, node: ast.Subscript) -> Value:
        """The address of an element, as a pointer to it."""
        pointer = self.value(node.value)
        element = pointer.type.element
        if pointer.type.kind != "pointer" or element is None:
            raise self.failure(node, f"expected a pointer to numbers, got {pointer.type.name}")
        return self.moved(pointer, element, self.index(node.slice))

    def moved(self, pointer: Value, element: Type, index: str) -> Value:
        if index == "0":
            return pointer
        at = self.new(f"getelementptr {element.memory}, ptr {pointer.text}, i64 {index}")
        return Value(pointer.type, at)

    def load(self, place: Value) -> Value:
        element = place.type.element
        assert element is not None, "places are of elements"
        loaded = self.new(f"load {element.memory}, ptr {place.text}, align {element.size}")
        if element.kind == "bool":
            return Value(element, self.new(f"icmp ne i8 {loaded}, 0"))
        return Value(element, loaded)

    def store(self, node: ast.AST, place: Value, value: Value) -> None:
        """An element takes its own type, as in NumPy."""
        element = place.type.element
        assert element is not None, "places are of elements"
        text = self.converted(node, value, element, written=True).text
        if element.kind == "bool":
            text = self.new(f"zext i1 {text} to i8")
        self.lines.append(f"  store {element.memory} {text}, ptr {place.text}, align {element.size}")

    def index(self, node: ast.expr) -> str:
        value = self.value(node)
        if value.type.kind not in ("int", "bool", "literal"):
            raise self.failure(node, f"expected an int, got {value.type.name}")
        return self.converted(node, value, INT64).text

    def known(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name not in self.variables:
                found = self.around.get(name, ...)
                return (
                    found
                    if isinstance(found, bool | int | float) and not isinstance(found, np.generic)
                    else ...
                )
            case ast.UnaryOp(op=sign, operand=operand):
                number = self.known(operand)
                return ... if number is ... else self.folded(node, type(sign), number)
            case (
                ast.BinOp(left=left, op=sign, right=right)
                | ast.Compare(left=left, ops=[sign], comparators=[right])
            ):
                one = self.known(left)
                other = ... if one is ... else self.known(right)
                return ... if other is ... else self.folded(node, type(sign), one, other)
            case ast.BoolOp(op=sign, values=values):
                ends = isinstance(sign, ast.Or)
                numbers = [self.known(value) for value in values]
                if any(number is not ... and bool(number) is ends for number in numbers):
                    return ends
                return ... if ... in numbers else not ends
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self.known(test)
                return ... if decided is ... else self.known(body if decided else orelse)
        return ...

    def value(self, node: ast.expr) -> Value:
        number = self.known(node)
        if number is not ...:
            return types.literal(number)
        match node:
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Subscript():
                return self.load(self.place(node))
            case ast.BinOp(left=left, op=sign, right=right):
                return self.binary(node, sign, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
                return self.chosen(node, ast.Constant(True), ast.Constant(False))
            case ast.UnaryOp(op=sign, operand=operand):
                return self.unary(node, sign, self.value(operand))
            case ast.Compare():
                return Value(types.BOOL, self.truth(node))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.chosen(test, body, orelse)
            case ast.Tuple(elts=elements):
                parts = tuple(self.value(element) for element in elements)
                return Value(types.tuple_of(tuple(part.type for part in parts)), parts=parts)
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self.calling(node, function, arguments)
        raise self.failure(node, "not in the language")

    def named(self, node: ast.expr, name: str) -> Value:
        kind = self.variables.get(name)
        if kind is not None:
            return Value(kind, self.new(f"load {kind.llvm}, ptr %{name}.at"))
        found = self.around.get(name)
        if isinstance(found, np.generic) and found.dtype.name in types.NUMBERS:
            kind = types.NUMBERS[found.dtype.name]
            return Value(kind, types.constant(kind, found.item()))
        if name in self.around:
            raise self.failure(node, f"{name} is {found!r}, which is neither a number nor a marked function")
        raise self.failure(node, f"{name} is read before a value is given to it")

    def truth(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare):
            if len(node.ops) == 1:
                one, other = self.value(node.left), self.value(node.comparators[0])
                return self.compared(node, node.ops[0], one, other)
            ends = [node.left, *node.comparators]
            pairs = [
                ast.Compare(a, [sign], [b]) for a, sign, b in zip(ends, node.ops, ends[1:], strict=False)
            ]
            return self.value(ast.copy_location(ast.BoolOp(ast.And(), list(pairs)), node)).text
        value = self.value(node)
        if not value.type.is_number:
            raise self.failure(node, f"expected a condition, got {value.type.name}")
        return self.nonzero(value)

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        """``body if test else orelse``, of which only one is computed."""
        decided = self.known(test)
        if decided is not ...:
            return self.value(body if decided else orelse)
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(test, yes, no)
        self.start(yes)
        one = self.value(body)
        rest = len(self.lines)
        self.start(no)
        other = self.value(orelse)
        if len(one.parts) != len(other.parts):
            raise self.failure(test, f"a choice between {one.type.name} and {other.type.name}")
        pairs = list(zip(one.parts or (one,), other.parts or (other,), strict=True))
        kinds = [self.meeting(test, *pair) for pair in pairs]
        places = [self.memory(kind.llvm) for kind in kinds]
        # What the first one needs to be of the common type is written where it ends.
        for side, end in ((1, len(self.lines)), (0, rest)):
            tail, self.lines = self.lines[end:], self.lines[:end]
            for pair, kind, place in zip(pairs, kinds, places, strict=True):
                stored = self.converted(test, pair[side], kind)
                self.lines.append(f"  store {kind.llvm} {stored.text}, ptr {place}")
            self.jump(after)
            self.lines += tail
        self.start(after)
        parts = tuple(
            Value(kind, self.new(f"load {kind.llvm}, ptr {place}"))
            for kind, place in zip(kinds, places, strict=True)
        )
        return Value(types.tuple_of(tuple(kinds)), parts=parts) if one.parts else parts[0]

    def meeting(self, node: ast.AST, one: Value, other: Value) -> Type:
        """The type of a variable that holds either of two values."""
        if one.type == other.type and one.type is not types.LITERAL:
            return one.type
        return self.together(node, one, other)[0]
