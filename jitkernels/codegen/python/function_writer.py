"""Functions of the kernel language: parameters, variables, statements, results."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.codegen.function_ast import place_of
from jitkernels.codegen.python import types
from jitkernels.codegen.python.call_expressions import Calls, Definitions
from jitkernels.codegen.python.types import INT64, NOTHING, Type, Value
from jitkernels.codegen.source_protocol import references, vectors
from jitkernels.errors import BuildError

FLAGS = ("nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc")
"""LLVM's fast-math flags."""


class FunctionWriter(Calls):
    """Emits one function for arguments of given types."""

    def __init__(
        self, program: Definitions, function: Callable[..., Any], arguments: Sequence[Value], flags: Sequence[str]
    ) -> None:
        super().__init__(function)
        self.program, self.flags = program, flags
        self.around = references(function, {*self.code.co_names, *self.code.co_freevars})
        self.variables: dict[str, Type] = {}
        self.result: Type | None = None
        self.status_of = ""
        for flag in flags:
            if flag not in FLAGS:
                raise BuildError(f"{place_of(self.code)} has the flag {flag!r}: expected some of {', '.join(FLAGS)}")
        parameters = self.tree.args
        for other in (
            parameters.vararg,
            parameters.kwarg,
            *parameters.posonlyargs,
            *parameters.kwonlyargs,
            *parameters.defaults,
        ):
            if other is not None:
                raise self.failure(other, "expected arguments without '*', '/' and default")
        names = [argument.arg for argument in parameters.args]
        if len(names) != len(arguments):
            raise BuildError(
                f"{place_of(self.code)} takes {len(names)} arguments "
                f"({', '.join(names)}), and is called with {len(arguments)}"
            )
        for name, value in zip(names, arguments, strict=True):
            self.write(self.tree, name, value)

    def body(self, status_of: str = "") -> tuple[Type, str]:
        """Return the result type and the instructions of the function.

        As the body or check of a range kernel (`status_of`) it returns its result as an i64 status, and 0 for
        nothing.
        """
        self.status_of = status_of
        self.statements(self.tree.body)
        self.jump("exit")
        self.start("exit")
        result = self.result or NOTHING
        if result is NOTHING:
            self.lines.append("  ret i64 0" if status_of else "  ret void")
        else:
            self.entry += [
                f"  %result = alloca {self.register(result)}",
                f"  store {self.register(result)} zeroinitializer, ptr %result",
            ]
            value = Value(result, self.new(f"load {self.register(result)}, ptr %result"))
            if status_of:
                value = self.converted(self.tree, value, INT64, written=True)
            self.lines.append(f"  ret {self.register(value.type)} {value.text}")
        return result, "\n".join([*self.entry, *self.lines])

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id=word), args=limits, keywords=[]), orelse=[]
            ) if self.around.get(word) is vectors and len(limits) == 3:
                self.in_vectors(node, name, limits)
            case _:
                super().statement(node)

    def in_vectors(self, node: ast.For, name: str, limits: Sequence[ast.expr]) -> None:
        """Emit a `vectors` loop: full vectors, then a masked remainder."""
        lanes = self.known(limits[2])
        if not isinstance(lanes, int) or lanes < 0 or lanes & (lanes - 1):
            raise self.failure(node, "expected lanes that are a constant: a power of two, or 0")
        begin, end = self.index(limits[0]), self.index(limits[1])
        if lanes == 0:
            self.counted(node, name, (begin, end, "1"), breaks=False)
            return
        count = self.new(f"sub i64 {end}, {begin}")
        self.program.declare("llvm.smax.i64", "i64", ["i64", "i64"])
        some = self.new(f"call i64 @llvm.smax.i64(i64 {count}, i64 0)")
        whole = self.new(f"and i64 {some}, {-lanes}")
        left = self.new(f"add nsw i64 {begin}, {whole}")
        self.counted(node, name, (begin, left, "1"), self.program.vector_loop(lanes), breaks=False)
        self.counted(node, name, (left, end, "1"), self.program.vector_loop(lanes, masked=True), breaks=False)

    def write(self, node: ast.AST, name: str, value: Value) -> None:
        kind = self.variables.get(name)
        if value.type.fields and (kind is None or kind.fields == value.type.fields):
            self.variables.setdefault(name, value.type)
            for field, part in zip(value.type.fields, value.parts, strict=True):
                self.write(node, f"{name}.{field}", part)
            return
        if value.type == types.NONE and kind in (None, types.NONE):
            self.variables[name] = types.NONE
            return
        if kind is None:
            if value.parts or value.type is NOTHING:
                raise self.failure(node, f"{name} would be {value.type.name}: expected one value")
            kind = self.variables[name] = types.default_of(value)
            # Uninitialized variables are 0: otherwise LLVM would treat such a read as undefined.
            self.entry += [
                f'  %"{name}.at" = alloca {self.register(kind)}',
                f'  store {self.register(kind)} zeroinitializer, ptr %"{name}.at"',
            ]
        why = self.cast_error(value, kind)
        if why:
            raise self.failure(node, f"{name} is a variable of one type: {why}")
        stored = self.converted(node, value, kind)
        self.lines.append(f'  store {self.register(kind)} {stored.text}, ptr %"{name}.at"')

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        self.put(target, self.value(value))

    def put(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.write(target, name, value)
            case ast.Subscript():
                self.store(target, self.place(target), value)
            case ast.Tuple(elts=targets) if len(targets) == len(value.parts):
                for item, part in zip(targets, value.parts, strict=True):
                    self.put(item, part)
            case ast.Tuple(elts=targets):
                raise self.failure(target, f"{len(targets)} targets for {len(value.parts) or 'one'} value(s)")
            case _:
                raise self.failure(target, "a target that is not in the language")

    def update(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            place = self.place(node.target)
            old = self.load(place)
            self.store(node, place, self.binary(node, node.op, old, self.value(node.value)))
        elif isinstance(node.target, ast.Name):
            old = self.named(node.target, node.target.id)
            self.put(node.target, self.binary(node, node.op, old, self.value(node.value)))
        else:
            raise self.failure(node, "a target that is not in the language")

    def give(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self.value(node.value)
            if value.type is NOTHING:
                raise self.failure(node, "expected a value")
            if self.status_of:
                self.demand_status(node, value)
            if self.result is None:
                kinds = tuple(types.default_of(part) for part in value.parts)
                is_tuple = value.parts and not value.type.fields
                self.result = types.tuple_of(kinds) if is_tuple else types.default_of(value)
            self.lines.append(
                f"  store {self.register(self.result)} {self.whole(node, value, self.result)}, ptr %result"
            )
        self.leave("br label %exit")

    def demand_status(self, node: ast.AST, value: Value) -> None:
        """Check a returned status: a body returns that of a call; only a check has codes of its own."""
        kind = types.default_of(value)
        if kind.kind not in ("int", "bool"):
            raise self.failure(node, f"expected to return nothing, or an int as its status, got {kind.name}")
        if self.status_of == "body" and value.number:
            raise self.failure(node, "expected to return nothing, or the status of what was called, got a number")

    def whole(self, node: ast.AST, value: Value, kind: Type) -> str:
        """A value cast to a type, with a tuple's parts combined."""
        if not kind.parts:
            return self.converted(node, value, kind).text
        if len(kind.parts) != len(value.parts):
            raise self.failure(node, f"expected {kind.name}, got {len(value.parts) or 'one'} value(s)")
        text = "poison"
        for i, (part, part_type) in enumerate(zip(types.leaves(value), types.leaf_types(kind), strict=True)):
            item = self.converted(node, part, part_type)
            text = self.new(f"insertvalue {self.register(kind)} {text}, {self.register(part_type)} {item.text}, {i}")
        return text
