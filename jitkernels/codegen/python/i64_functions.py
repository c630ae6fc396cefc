"""Translate functions over 64-bit words, such as the launcher's and the dispatcher's, to LLVM IR.

Every value is a word: comparisons are 0 or 1, addresses are integers, ``address[i]`` is the word at index ``i``;
`jitkernels.codegen.i64_intrinsics` has what Python has no operator for. Anything else is an error with function and
line.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.codegen.python.control_statements import WEIGHTS, ControlFlow
from jitkernels.codegen.python.types import INT64, Value

Function = Callable[..., Any]
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip


def translated(
    functions: Sequence[Function],
    exported: Sequence[str],
    constants: Mapping[str, int],
    provided: Mapping[str, str],
    inlined: Sequence[str] = (),
) -> str:
    """Return LLVM IR of the `exported` functions, and of all functions that they call.

    The others are internal, and `inlined` ones always inlined. Other callees and symbols are `provided` as IR by
    name, or external; a name that is not a variable is one of `constants`. Raises BuildError, naming function and
    line, for anything outside of the language.
    """
    by_name = {function.__name__: function for function in functions}
    externals: dict[str, int] = {}
    symbols: set[str] = set()
    needed, texts = [*exported], []
    for name in needed:  # the list grows during iteration
        writer = _WordWriter(by_name[name], {*by_name, *provided}, constants, externals, symbols)
        texts.append(writer.definition(name in exported, name in inlined))
        symbols |= writer.called & {*provided}
        needed += sorted(writer.called & {*by_name} - {*needed})
    texts += [text for name, text in provided.items() if name in symbols]
    declared = [
        f"declare i64 @{name}({', '.join(['i64'] * count) if count >= 0 else 'i64, i1'})"
        for name, count in sorted(externals.items())
    ]
    outside = [f"@{name} = external global i8" for name in sorted(symbols - {*provided} - {*externals})]
    return "\n".join([*outside, *declared, *texts, f"!0 = {WEIGHTS}", ""])


class _WordWriter(ControlFlow):
    """Emits one function."""

    def __init__(
        self,
        function: Function,
        known: set[str],
        constants: Mapping[str, int],
        externals: dict[str, int],
        symbols: set[str],
    ) -> None:
        super().__init__(function)
        self.functions, self.constants = known, constants
        self.externals, self.symbols = externals, symbols
        self.called: set[str] = set()
        self.parameters = [argument.arg for argument in self.tree.args.args]
        stored = [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.variables = dict.fromkeys([*self.parameters, *stored])

    def definition(self, exported: bool, inlined: bool) -> str:
        self.statements(self.tree.body)
        self.lines.append("  ret i64 0")
        head = ", ".join(f"i64 %{name}" for name in self.parameters)
        memory = [f"  %{name}.at = alloca i64" for name in self.variables]
        stores = [f"  store i64 %{name}, ptr %{name}.at" for name in self.parameters]
        linkage, inline = "" if exported else "internal ", " alwaysinline" if inlined else ""
        body = "\n".join([*memory, *self.entry, *stores, *self.lines])
        return f"define {linkage}i64 @{self.tree.name}({head}) nounwind{inline} {{\n{body}\n}}"

    def write(self, node: ast.AST, name: str, value: Value) -> None:  # noqa: ARG002  # the other language may refuse
        self.lines.append(f"  store i64 {value.text}, ptr %{name}.at")

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                self.write(target, name, self.value(value))
            case ast.Subscript(value=base, slice=index):
                word = self.word(value)
                self.lines.append(f"  store i64 {word}, ptr {self.element(base, index)}")
            case _:
                raise self.failure(target, "a target that is not in the language")

    def update(self, node: ast.AugAssign) -> None:
        match node.target:
            case ast.Name(id=name):
                result = self.binary(node, node.op, self.named(node, name), self.word(node.value))
                self.write(node, name, Value(INT64, result))
            case ast.Subscript(value=base, slice=index):
                at = self.element(base, index)
                result = self.binary(node, node.op, self.new(f"load i64, ptr {at}"), self.word(node.value))
                self.lines.append(f"  store i64 {result}, ptr {at}")
            case _:
                raise self.failure(node, "a target that is not in the language")

    def give(self, node: ast.Return) -> None:
        self.leave(f"ret i64 {0 if node.value is None else self.value(node.value).text}")

    def index(self, node: ast.expr) -> str:
        return self.value(node).text

    def known(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int(number)):
                return int(number)
        return ...

    def is_builtin(self, name: str) -> bool:
        return name not in self.variables

    def branch(self, test: ast.expr, yes: str, no: str, weights: str = "") -> None:
        match test:
            case ast.Call(func=ast.Name(id="unlikely"), args=[inner]):
                super().branch(inner, yes, no, ", !prof !0")
            case _:
                super().branch(test, yes, no, weights)

    def truth(self, node: ast.expr) -> str:
        match node:
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _COMPARISONS:
                one, other = self.value(left).text, self.value(right).text
                return self.new(f"icmp {_COMPARISONS[type(sign)]} i64 {one}, {other}")
        return self.new(f"icmp ne i64 {self.value(node).text}, 0")

    def value(self, node: ast.expr) -> Value:
        return Value(INT64, self.word(node))

    def word(self, node: ast.expr) -> str:
        """Emit an expression; return LLVM's text of its value."""
        match node:
            case ast.Constant(value=int(number)):
                return str(int(number))
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(node, operator, self.word(left), self.word(right))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(number))):
                return str(-number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.new(f"sub i64 0, {self.word(operand)}")
            case ast.Subscript(value=base, slice=index):
                return self.new(f"load i64, ptr {self.element(base, index)}")
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.new(f"xor i64 -1, {self.word(operand)}")
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.chosen(test, body, orelse)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.chosen(node, ast.Constant(1), ast.Constant(0))
            case ast.Attribute(value=ast.Name(id=space), attr=name):
                return self.named(node, f"{space}.{name}")
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self.calling(node, name, arguments)
            case _:
                raise self.failure(node, "not in the language")

    def named(self, node: ast.AST, name: str) -> str:
        if name in self.variables:
            return self.new(f"load i64, ptr %{name}.at")
        if name not in self.constants:
            raise self.failure(node, "neither a variable nor a constant")
        return str(int(self.constants[name]))

    def binary(self, node: ast.AST, operator: ast.operator, left: str, right: str) -> str:
        if type(operator) not in _OPERATORS:
            raise self.failure(node, "an operator that is not in the language")
        return self.new(f"{_OPERATORS[type(operator)]} i64 {left}, {right}")

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> str:
        yes, no, after = self.label(), self.label(), self.label()
        kept = self.memory("i64")
        self.branch(test, yes, no)
        for label, value in ((yes, body), (no, orelse)):
            self.start(label)
            self.lines.append(f"  store i64 {self.word(value)}, ptr {kept}")
            self.jump(after)
        self.start(after)
        return self.new(f"load i64, ptr {kept}")

    def constant(self, node: ast.expr) -> int:
        """Evaluate a constant expression."""
        match node:
            case ast.Constant(value=int(number)):
                return int(number)
            case ast.Name(id=name) if name in self.constants:
                return int(self.constants[name])
            case ast.Attribute(value=ast.Name(id=space), attr=name) if f"{space}.{name}" in self.constants:
                return int(self.constants[f"{space}.{name}"])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.constant(left) + self.constant(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self.constant(left) * self.constant(right)
            case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
                return self.constant(left) // self.constant(right)
            case _:
                raise self.failure(node, "expected constants, +, * and //")

    def element(self, base: ast.expr, index: ast.expr) -> str:
        """The pointer to a word of an array of words."""
        begin = self.word(base)
        if not (isinstance(index, ast.Constant) and index.value == 0):
            begin = self.new(f"add i64 {begin}, {self.new(f'mul i64 8, {self.word(index)}')}")
        return self.new(f"inttoptr i64 {begin} to ptr")

    def place(self, arguments: Sequence[ast.expr]) -> str:
        base = self.word(arguments[0])
        if len(arguments) > 1 and not (isinstance(arguments[1], ast.Constant) and arguments[1].value == 0):
            base = self.new(f"add i64 {base}, {self.word(arguments[1])}")
        return self.new(f"inttoptr i64 {base} to ptr")

    def calling(self, node: ast.expr, name: str, arguments: Sequence[ast.expr]) -> str:
        match name:
            case "load":
                return self.new(f"load i64, ptr {self.place(arguments)}")
            case "load32":
                return self.new(f"sext i32 {self.new(f'load i32, ptr {self.place(arguments)}')} to i64")
            case "load8":
                return self.new(f"zext i8 {self.new(f'load i8, ptr {self.place(arguments)}')} to i64")
            case "stack":
                area = self.memory(f"[{self.constant(arguments[0])} x i64], align 16")
                return self.new(f"ptrtoint ptr {area} to i64")
            case "address":
                symbol = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
                if not isinstance(symbol, str):
                    raise self.failure(node, "expected the name of a symbol")
                self.symbols.add(symbol)
                return self.new(f"ptrtoint ptr @{symbol} to i64")
            case "call":
                function = self.new(f"inttoptr i64 {self.word(arguments[0])} to ptr")
                passed = ", ".join(f"i64 {self.word(argument)}" for argument in arguments[1:])
                return self.new(f"call i64 {function}({passed})")
            case "min" | "max":
                passed = ", ".join(f"i64 {self.word(argument)}" for argument in arguments)
                self.externals[f"llvm.s{name}.i64"] = 2
                return self.new(f"call i64 @llvm.s{name}.i64({passed})")
            case "leading_zeros":
                self.externals["llvm.ctlz.i64"] = -1
                return self.new(f"call i64 @llvm.ctlz.i64(i64 {self.word(arguments[0])}, i1 false)")
        passed = ", ".join(f"i64 {self.word(argument)}" for argument in arguments)
        self.called.add(name)
        if name not in self.functions and self.externals.setdefault(name, len(arguments)) != len(arguments):
            raise self.failure(node, "called with another number of arguments before")
        return self.new(f"call i64 @{name}({passed})")
