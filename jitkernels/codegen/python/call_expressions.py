"""Calls of the kernel language: casts, NumPy functions that are intrinsics, inlined functions and C functions."""

import ast
import inspect
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

import numpy as np

from jitkernels.codegen.parameters import struct_fields
from jitkernels.codegen.python import half_casts, lookup_tables, types
from jitkernels.codegen.python.expressions import Expressions
from jitkernels.codegen.python.types import INT64, NOTHING, Type, Value
from jitkernels.codegen.source_protocol import External, IRFunction, Table, high_product, offset, vectors
from jitkernels.core import cpu_target

_INTRINSICS = {
    "sqrt": ("sqrt", 1), "abs": ("fabs", 1), "fabs": ("fabs", 1), "floor": ("floor", 1), "ceil": ("ceil", 1),
    "trunc": ("trunc", 1), "rint": ("rint", 1), "copysign": ("copysign", 2),
}  # fmt: skip
"""NumPy functions that are LLVM intrinsics."""


class Definitions(Protocol):
    """What a function writer needs from its module."""

    @property
    def translating(self) -> AbstractSet[int]:
        """The functions, by id, that are being translated: calling one would be recursion."""

    def called(self, function: Callable[..., Any], arguments: tuple[Value, ...]) -> tuple[str, Type]:
        """The symbol and result type of an inlined function for arguments of these types."""

    def vector_loop(self, lanes: int, *, masked: bool = False) -> str:
        """The loop metadata of the latch of a `vectors` loop."""

    def declare(self, symbol: str, result: str, arguments: Sequence[str]) -> None:
        """Declare a function that is defined elsewhere."""

    def know(self, symbol: str, definition: str) -> None:
        """Define a constant, once, whose symbol identifies its content."""


class Calls(Expressions):
    """Emits calls."""

    program: Definitions

    def calling(self, node: ast.Call, function: ast.expr, arguments: Sequence[ast.expr]) -> Value:
        match function:
            case ast.Attribute(value=inner, attr="view") if len(arguments) == 1:
                return self.seen_as(node, self.value(inner), self.type_named(node, arguments[0]))
            case ast.Attribute(value=ast.Name(id=space), attr=name) if self.around.get(space) is np:
                if name in _INTRINSICS and len(arguments) == _INTRINSICS[name][1]:
                    return self.intrinsic(node, _INTRINSICS[name][0], [self.value(argument) for argument in arguments])
                return self.number(node, function, arguments)
            case ast.Name(id=name) if name in self.variables:
                raise self.failure(node, f"{name} is a variable, not a function")
            case ast.Name(id=name):
                return self.function(node, name, self.around.get(name), arguments)
            case ast.Attribute(attr=name) if (found := self.outer(function)) is not ...:
                return self.function(node, name, found, arguments)
        raise self.failure(node, "not in the language")

    def row(self, node: ast.AST, table: Table, index: Value) -> Value:
        return lookup_tables.row(self, node, table, index)

    def type_named(self, node: ast.AST, name: ast.expr) -> Type:
        """The type that an expression such as ``np.float32`` names."""
        found: Any = None
        match name:
            case ast.Name(id="int" | "float" | "bool" as bare) if self.is_builtin(bare):
                found = {"int": np.int64, "float": np.float64, "bool": np.bool_}[bare]
            case ast.Name(id=bare):
                found = self.around.get(bare)
            case ast.Attribute(value=ast.Name(id=space), attr=bare) if self.around.get(space) is np:
                found = getattr(np, bare, None)
            case ast.Attribute():
                found = self.outer(name)
        if isinstance(found, type) and issubclass(found, np.generic):
            kind = types.NUMBERS.get(np.dtype(found).name)
            if kind is not None and kind.is_number:
                return kind
        raise self.failure(
            node,
            f"{ast.unparse(name)} is no element type and no function of the language, which has "
            f"{', '.join(f'np.{known}' for known in _INTRINSICS)}, min, max, abs and marked functions such as those of "
            "jitkernels.microkernels.maths",
        )

    def number(self, node: ast.AST, name: ast.expr, arguments: Sequence[ast.expr]) -> Value:
        kind = self.type_named(node, name)
        if len(arguments) != 1:
            raise self.failure(node, f"expected one number, got {len(arguments)}")
        return self.converted(node, self.value(arguments[0]), kind, written=True)

    def function(self, node: ast.Call, name: str, found: Any, arguments: Sequence[ast.expr]) -> Value:
        if found is None and name in ("min", "max", "abs"):
            return self.builtin(node, name, [self.value(argument) for argument in arguments])
        if found is offset or found is vectors:
            if found is vectors or len(arguments) != 2:
                raise self.failure(node, "expected offset(pointer, elements), and vectors() only behind 'in'")
            pointer, index = self.value(arguments[0]), self.index(arguments[1])
            if pointer.type == types.NONE:
                return pointer
            if pointer.type.kind != "pointer" or pointer.type.element is None:
                raise self.failure(node, f"expected a pointer to numbers, got {pointer.type.name}")
            return self.moved(pointer, pointer.type.element, index)
        if found is high_product:
            return self.upper_half(node, [self.value(argument) for argument in arguments])
        fields = struct_fields(found)
        if fields is not None:
            return self.construct(node, found, tuple(fields), [self.value(argument) for argument in arguments])
        if isinstance(found, External | IRFunction):
            return self.external(node, found, [self.value(argument) for argument in arguments])
        word = getattr(found, "instruction", "") if inspect.isfunction(found) else ""
        if inspect.isfunction(found) and hasattr(found, "fastmath"):
            values = [self.value(argument) for argument in arguments]
            is_half = any(
                value.type in (half_casts.FLOAT16, half_casts.BFLOAT16) for value in values
            )  # by way of float32
            if word and cpu_target.target().does(word) and not is_half:
                return self.scaled(node, *values) if word == "ldexp" else self.intrinsic(node, word, values)
            return self.marked(node, found, values)
        if inspect.isfunction(found):
            raise self.failure(node, f"{name} is a function without the mark @inlined()")
        return self.number(node, node.func, arguments)

    def construct(self, node: ast.AST, kind: type, fields: tuple[str, ...], values: Sequence[Value]) -> Value:
        """Emit a struct: variables and arguments of it are its fields."""
        if len(values) != len(fields):
            raise self.failure(node, f"expected {len(fields)} fields ({', '.join(fields)}), got {len(values)}")
        parts = tuple(self.argument(node, value) for value in values)
        return Value(types.tuple_of(tuple(part.type for part in parts), kind.__name__, fields), parts=parts)

    def argument(self, node: ast.AST, value: Value) -> Value:
        """A value as an argument, or as a field: literals are cast to the type of variables."""
        if value.type.fields:
            return value
        if value.parts or value.type is NOTHING:
            raise self.failure(node, f"an argument that is {value.type.name}: expected one value")
        return self.converted(node, value, types.default_of(value))

    def builtin(self, node: ast.AST, name: str, values: Sequence[Value]) -> Value:
        if name == "abs" and len(values) == 1:
            kind = types.default_of(values[0])
            if kind.kind == "float":
                return self.intrinsic(node, "fabs", values)
            if not kind.is_number:
                raise self.failure(node, f"expected a number, got {kind.name}")
            kind = INT64 if kind.kind == "bool" else kind
            value = self.converted(node, values[0], kind)
            if not kind.is_signed:
                return value
            negative = self.new(f"sub {self.register(kind)} {self.constant(kind, 0)}, {value.text}")
            return self.extreme(node, "max", value, Value(value.type, negative))
        if name == "abs" or len(values) < 2:
            raise self.failure(
                node, f"{name} of {len(values)} values: expected {'one' if name == 'abs' else 'two or more'}"
            )
        result = values[0]
        for value in values[1:]:
            result = self.extreme(node, name, result, value)
        return result

    def intrinsic(self, node: ast.AST, name: str, values: Sequence[Value]) -> Value:
        kind = types.default_of(values[0]) if len(values) == 1 else self.agreed(node, *values[:2])
        if kind.kind != "float":
            raise self.failure(node, f"expected a floating-point number, got {kind.name}")
        if half_casts.is_emulated(kind):
            singles = [self.converted(node, value, types.FLOAT32) for value in values]
            return self.converted(node, self.intrinsic(node, name, singles), kind, written=True)
        texts = [self.converted(node, value, kind).text for value in values]
        bits = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}[kind.llvm]
        llvm, symbol = self.register(kind), f"llvm.{name}.{f'v{self.lanes}' if self.lanes > 1 else ''}{bits}"
        self.program.declare(symbol, llvm, [llvm] * len(texts))
        # These are correctly rounded; "afn" would turn a square root into an estimate.
        flags = "".join(f"{flag} " for flag in self.flags if flag != "afn")
        passed = ", ".join(f"{llvm} {text}" for text in texts)
        return Value(kind, self.new(f"call {flags}{llvm} @{symbol}({passed})"))

    def upper_half(self, node: ast.AST, values: Sequence[Value]) -> Value:
        """Emit the upper half of a product of unsigned integers, which a processor computes in one instruction."""
        kind = self.agreed(node, *values[:2]) if len(values) == 2 else NOTHING
        if kind.kind != "int" or kind.is_signed:
            raise self.failure(node, f"expected two unsigned integers, got {kind.name}")
        bits = 8 * kind.size
        narrow = self.register(kind)
        wide = f"<{self.lanes} x i{2 * bits}>" if self.lanes > 1 else f"i{2 * bits}"
        shift = f"splat (i{2 * bits} {bits})" if self.lanes > 1 else str(bits)
        a, b = (self.new(f"zext {narrow} {self.converted(node, value, kind).text} to {wide}") for value in values)
        upper = self.new(f"lshr {wide} {self.new(f'mul nuw {wide} {a}, {b}')}, {shift}")
        return Value(kind, self.new(f"trunc {wide} {upper} to {narrow}"))

    def scaled(self, node: ast.AST, value: Value, count: Value) -> Value:
        """Emit ldexp: a number times a power of two."""
        kind = types.default_of(value)
        whole = types.NUMBERS[f"int{8 * kind.size}"]
        lanes = f"v{self.lanes}" if self.lanes > 1 else ""
        symbol = f"llvm.ldexp.{lanes}f{8 * kind.size}.{lanes}i{8 * kind.size}"
        a = f"{self.register(kind)} {self.converted(node, value, kind).text}"
        n = f"{self.register(whole)} {self.converted(node, count, whole).text}"
        self.program.declare(symbol, self.register(kind), [self.register(kind), self.register(whole)])
        return Value(kind, self.new(f"call {self.register(kind)} @{symbol}({a}, {n})"))

    def external(self, node: ast.AST, found: External | IRFunction, values: Sequence[Value]) -> Value:
        kinds = [types.of_c(text) for text in found.arguments]
        if len(kinds) != len(values):
            raise self.failure(node, f"expected {len(kinds)} arguments, got {len(values)}")
        passed = ", ".join(
            f"{kind.llvm} {self.converted(node, value, kind, written=True).text}"
            for kind, value in zip(kinds, values, strict=True)
        )
        result = types.of_c(found.result)
        self.program.declare(found.symbol, result.llvm, [kind.llvm for kind in kinds])
        return self.result_of(result, f"call {result.llvm} @{found.symbol}({passed})")

    def marked(self, node: ast.AST, function: Callable[..., Any], values: Sequence[Value]) -> Value:
        symbol, result, arguments = self.translate_callee(node, function, values)
        leaves = (leaf for value in arguments for leaf in types.leaves(value))
        passed = ", ".join(f"{self.register(leaf.type)} {leaf.text}" for leaf in leaves)
        return self.result_of(result, f"call {self.register(result)} {symbol}({passed})")

    def translate_callee(
        self, node: ast.AST, function: Callable[..., Any], values: Sequence[Value]
    ) -> tuple[str, Type, tuple[Value, ...]]:
        """The symbol and result type of an inlined function, and its arguments cast to its parameter types."""
        if id(function) in self.program.translating:
            raise self.failure(node, "a function that calls itself")
        expected = function.__code__.co_argcount
        if len(values) != expected:
            raise self.failure(node, f"expected {expected} arguments, got {len(values)}")
        arguments = tuple(self.argument(node, value) for value in values)
        symbol, result = self.program.called(function, arguments)
        return symbol, result, arguments

    def result_of(self, result: Type, call: str) -> Value:
        if result is NOTHING:
            self.lines.append(f"  {call}")
            return Value(NOTHING)
        whole = self.new(call)
        if not result.parts:
            return Value(result, whole)
        count = len(types.leaf_types(result))
        return types.assembled(
            result, (self.new(f"extractvalue {self.register(result)} {whole}, {i}") for i in range(count))
        )
