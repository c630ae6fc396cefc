"""Expressions of the kernel language: names, elements, conditionals."""

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from jitkernels.codegen.parameters import is_property, struct_fields
from jitkernels.codegen.python import types
from jitkernels.codegen.python.arithmetic import Arithmetic
from jitkernels.codegen.python.types import INT64, Type, Value
from jitkernels.codegen.source_protocol import Table


class Expressions(Arithmetic):
    """Emits expressions. `around`: the enclosing scopes by name; `variables`: the types of local variables."""

    around: Mapping[str, Any]
    variables: dict[str, Type]

    @abstractmethod
    def calling(self, node: ast.Call, function: ast.expr, arguments: Sequence[ast.expr]) -> Value:
        """Emit a call."""

    @abstractmethod
    def row(self, node: ast.AST, table: Table, index: Value) -> Value:
        """Emit a table lookup."""

    def is_builtin(self, name: str) -> bool:
        return name not in self.variables and name not in self.around

    def path(self, node: ast.expr) -> str:
        """The name of a variable, or of a field of a struct, such as ``sizes.m``; "" if it is neither."""
        match node:
            case ast.Name(id=name) if name in self.variables:
                return name
            case ast.Attribute(value=inner, attr=name) if f"{self.path(inner)}.{name}" in self.variables:
                return f"{self.path(inner)}.{name}"
        return ""

    def outer(self, node: ast.expr) -> Any:
        """The value of a name from around the function, or of a field of a struct there; else `Ellipsis`."""
        match node:
            case ast.Name(id=name) if name not in self.variables:
                return self.around.get(name, ...)
            case ast.Attribute(value=inner, attr=name):
                owner = self.outer(inner)
                fields = struct_fields(type(owner))
                if fields is not None and (name in fields or is_property(owner, name)):
                    return getattr(owner, name)
        return ...

    def is_table(self, name: str) -> bool:
        return name not in self.variables and isinstance(self.around.get(name), Table)

    def is_coefficients(self, name: str) -> bool:
        return name not in self.variables and type(self.around.get(name)) is tuple

    def coefficient(self, node: ast.expr, name: str, i: int) -> Value:
        """Emit one of a tuple of numbers of the enclosing scopes."""
        numbers = self.around[name]
        if not 0 <= i < len(numbers):
            raise self.failure(node, f"{name} has {len(numbers)} numbers")
        return self.captured(node, f"{name}[{i}]", numbers[i])

    def place(self, node: ast.Subscript) -> Value:
        """Emit the address of an element."""
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

    def load(self, pointer: Value) -> Value:
        element = pointer.type.element
        assert element is not None, "places are of elements"
        loaded = self.new(f"load {element.memory}, ptr {pointer.text}, align {element.size}")
        if element.kind == "bool":
            return Value(element, self.new(f"icmp ne i8 {loaded}, 0"))
        return Value(element, loaded)

    def store(self, node: ast.AST, pointer: Value, value: Value) -> None:
        """Emit a store; the value is cast to the element's type, as in NumPy."""
        element = pointer.type.element
        assert element is not None, "places are of elements"
        text = self.converted(node, value, element, written=True).text
        if element.kind == "bool":
            text = self.new(f"zext i1 {text} to i8")
        self.lines.append(f"  store {element.memory} {text}, ptr {pointer.text}, align {element.size}")

    def index(self, node: ast.expr) -> str:
        value = self.value(node)
        if value.type.kind not in ("int", "bool", "literal"):
            raise self.failure(node, f"expected an int, got {value.type.name}")
        return self.converted(node, value, INT64).text

    def known(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name() | ast.Attribute():
                result = self.outer(node)
                return result if isinstance(result, bool | int | float) and not isinstance(result, np.generic) else ...
            case ast.UnaryOp(op=sign, operand=operand):
                number = self.known(operand)
                return ... if number is ... else self.folded(node, type(sign), number)
            case ast.BinOp(left=left, op=sign, right=right):
                one, other = self.known(left), self.known(right)
                return ... if one is ... or other is ... else self.folded(node, type(sign), one, other)
            case ast.Compare(
                left=left, ops=[ast.Is() | ast.IsNot() as sign], comparators=[ast.Constant(value=None)]
            ) if path := self.path(left):
                return (self.variables[path] == types.NONE) is isinstance(sign, ast.Is)
            case ast.Compare(left=left, ops=signs, comparators=comparators):
                ends = [self.known(end) for end in (left, *comparators)]
                if ... in ends:
                    return ...
                return all(map(self.folded, repeat(node), map(type, signs), ends, ends[1:]))
            case ast.BoolOp(op=sign, values=values):
                for value in values:
                    number = self.known(value)
                    if number is ... or bool(number) is isinstance(sign, ast.Or):
                        return number
                return number
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = self.decided(test)
                return ... if decided is None else self.known(body if decided else orelse)
        return ...

    def value(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Name) and node.id in self.variables:  # the most frequent case
            return self.named(node, node.id)
        number = self.known(node)
        if number is not ...:
            return types.literal(number)
        match node:
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Subscript(value=ast.Name(id=name), slice=index) if self.is_table(name):
                return self.row(node, self.around[name], self.converted(index, self.value(index), INT64))
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as i)) if self.is_coefficients(
                name
            ):
                return self.coefficient(node, name, i)
            case ast.Subscript():
                return self.load(self.place(node))
            case ast.BinOp(left=left, op=sign, right=right):
                return self.binary(node, sign, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.Not()):
                return self.chosen(node, ast.Constant(True), ast.Constant(False))
            case ast.BoolOp(op=sign, values=values):
                return self.first_of(node, isinstance(sign, ast.Or), values)
            case ast.UnaryOp(op=sign, operand=operand):
                return self.unary(node, sign, self.value(operand))
            case ast.Compare():
                return Value(types.BOOL, self.truth(node))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.chosen(test, body, orelse)
            case ast.Tuple(elts=[_, *_] as elements):
                parts = tuple(self.value(element) for element in elements)
                if any((part.parts and not part.type.fields) or part.type is types.NOTHING for part in parts):
                    raise self.failure(node, "expected a tuple of single values")
                return Value(types.tuple_of(tuple(part.type for part in parts)), parts=parts)
            case ast.Attribute() if (path := self.path(node)) or self.outer(node) is not ...:
                return self.named(node, path or ast.unparse(node))
            case ast.Constant(value=None):
                return Value(types.NONE, "null")
            case ast.Call(func=function, args=arguments, keywords=[]):
                return self.calling(node, function, arguments)
        raise self.failure(node, "not in the language")

    def named(self, node: ast.expr, name: str) -> Value:
        kind = self.variables.get(name)
        if kind is not None and kind.fields:
            return Value(kind, parts=tuple(self.named(node, f"{name}.{field}") for field in kind.fields))
        if kind == types.NONE:
            return Value(kind, "null")
        if kind is not None:
            return Value(kind, self.new(f'load {self.register(kind)}, ptr %"{name}.at"'))
        result = self.outer(node)
        if result is not ...:
            return self.captured(node, name, result)
        raise self.failure(node, f"{name} has no value: none was given above, and nothing around is called so")

    def captured(self, node: ast.expr, name: str, number: Any) -> Value:
        """Emit a NumPy scalar of the enclosing scopes as a constant."""
        kind = types.OF_NUMPY.get(type(number))
        if kind is None:
            raise self.failure(node, f"{name} is {number!r}, which is neither a number nor a marked function")
        return Value(kind, self.constant(kind, number.item()))

    def truth(self, node: ast.expr) -> str:
        if isinstance(node, ast.Compare):
            return self.chain(node)
        return self.condition(node, self.value(node))

    def condition(self, node: ast.AST, value: Value) -> str:
        if not value.type.is_number:
            raise self.failure(node, f"expected a condition, got {value.type.name}")
        return self.nonzero(self.converted(node, value, types.default_of(value)))

    def chain(self, node: ast.Compare) -> str:
        """Emit ``a < b < c``: each operand is evaluated once, and none after the first false comparison."""
        one, other = self.value(node.left), self.value(node.comparators[0])
        bit = self.compared(node, node.ops[0], one, other)
        if len(node.ops) == 1:
            return bit
        kept, after = self.memory("i1"), self.label()
        for sign, following in zip(node.ops[1:], node.comparators[1:], strict=True):
            onwards = self.label()
            self.lines += [f"  store i1 {bit}, ptr {kept}", f"  br i1 {bit}, label %{onwards}, label %{after}"]
            self.start(onwards)
            one, other = other, self.value(following)
            bit = self.compared(node, sign, one, other)
        self.lines.append(f"  store i1 {bit}, ptr {kept}")
        self.jump(after)
        self.start(after)
        return self.new(f"load i1, ptr {kept}")

    def first_of(self, node: ast.AST, ends: bool, values: Sequence[ast.expr]) -> Value:
        """Emit ``a or b or c`` (`ends` true) or ``a and b and c``, which is one of the values."""
        one = self.value(values[0])
        if len(values) == 1:
            return one
        if one.type is types.LITERAL:
            return one if bool(one.number) is ends else self.first_of(node, ends, values[1:])
        enough, onwards = self.label(), self.label()
        labels = (enough, onwards) if ends else (onwards, enough)
        bit = self.condition(values[0], one)
        self.lines.append(f"  br i1 {bit}, label %{labels[0]}, label %{labels[1]}")
        self.start(enough)
        rest = len(self.lines)
        self.start(onwards)
        return self.joined(node, one, self.first_of(node, ends, values[1:]), rest)

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> Value:
        """Emit ``body if test else orelse``, of which only one is evaluated."""
        decided = self.decided(test)
        if decided is not None:
            return self.value(body if decided else orelse)
        yes, no = self.label(), self.label()
        self.branch(test, yes, no)
        self.start(yes)
        one = self.value(body)
        rest = len(self.lines)
        self.start(no)
        return self.joined(test, one, self.value(orelse), rest)

    def joined(self, test: ast.AST, one: Value, other: Value, rest: int) -> Value:
        """Merge the values of two blocks: one that ends at line `rest`, and the current one."""
        after = self.label()
        if len(one.parts) != len(other.parts):
            raise self.failure(test, f"a choice between {one.type.name} and {other.type.name}")
        pairs = list(zip(one.parts or (one,), other.parts or (other,), strict=True))
        kinds = [self.meeting(test, *pair) for pair in pairs]
        slots = [self.memory(kind.llvm) for kind in kinds]
        # Casts to the common type are emitted at the end of each block.
        for side, end in ((1, len(self.lines)), (0, rest)):
            tail, self.lines = self.lines[end:], self.lines[:end]
            for pair, kind, slot in zip(pairs, kinds, slots, strict=True):
                stored = self.converted(test, pair[side], kind)
                self.lines.append(f"  store {kind.llvm} {stored.text}, ptr {slot}")
            self.jump(after)
            self.lines += tail
        self.start(after)
        parts = tuple(
            Value(kind, self.new(f"load {kind.llvm}, ptr {slot}")) for kind, slot in zip(kinds, slots, strict=True)
        )
        return Value(types.tuple_of(tuple(kinds)), parts=parts) if one.parts else parts[0]

    def meeting(self, node: ast.AST, left: Value, right: Value) -> Type:
        """The type of a variable that holds either of two values."""
        if left.type.kind == "pointer" and right.type in (left.type, types.NONE):
            return left.type
        if right.type.kind == "pointer" and left.type == types.NONE:
            return right.type
        return self.agreed(node, left, right)
