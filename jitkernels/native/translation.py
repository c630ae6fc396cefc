"""Translates the language of `jitkernels.native.words` to LLVM IR.

What it has: assignments, ``if``, ``while``, ``for ... in range``, arithmetic, comparisons, calls of one another,
and the words. Everything else is refused by function and line.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.errors import BuildError
from jitkernels.native import codegen
from jitkernels.native.link import parsed
from jitkernels.native.source import External

Function = Callable[..., Any]
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "sdiv", ast.Mod: "srem", ast.BitAnd: "and",
    ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "lshr",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "slt", ast.LtE: "sle", ast.Gt: "sgt", ast.GtE: "sge",
}  # fmt: skip
WEIGHTS = '!{!"branch_weights", i32 1, i32 1000}'


def translated(
    functions: Sequence[Function],
    exported: Sequence[str],
    constants: Mapping[str, int],
    provided: Sequence[str] = (),
    inlined: Sequence[str] = (),
) -> str:
    """LLVM IR of functions that may call one another; those not `exported` are internal, `inlined` ones no calls.

    A call of any other name is one of an external C function, or of one that other IR of the object `provided`;
    a name that is not a variable is one of `constants`. Raises BuildError, naming function and line, for what the
    language does not have.
    """
    known = {function.__name__ for function in functions} | {*provided}
    externals: dict[str, int] = {}
    symbols: set[str] = set()
    texts = []
    for function in functions:
        writer = _Writer(function, known, constants, externals, symbols)
        name = function.__name__
        texts.append(writer.definition(name in exported, name in inlined))
    declared = [
        f"declare i64 @{name}({', '.join(['i64'] * count) if count >= 0 else 'i64, i1'})"
        for name, count in sorted(externals.items())
    ]
    outside = [f"@{name} = external global i8" for name in sorted(symbols - known - set(externals))]
    return "\n".join([*outside, *declared, *texts, f"!0 = {WEIGHTS}", ""])


class _Writer:
    """One function: variables live in memory of their own until LLVM puts them in registers."""

    def __init__(
        self,
        function: Function,
        known: set[str],
        constants: Mapping[str, int],
        externals: dict[str, int],
        symbols: set[str],
    ) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef), "written with 'def'"
        self.tree = tree
        self.known, self.constants = known, constants
        self.externals, self.symbols = externals, symbols
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []
        parameters = [argument.arg for argument in tree.args.args]
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        self.variables = dict.fromkeys([*parameters, *stored])
        self.parameters = parameters

    def definition(self, exported: bool, inlined: bool) -> str:
        for statement in self.tree.body:
            self.statement(statement)
        self.lines.append("  ret i64 0")
        head = ", ".join(f"i64 %{name}" for name in self.parameters)
        memory = [f"  %{name}.at = alloca i64" for name in self.variables]
        given = [f"  store i64 %{name}, ptr %{name}.at" for name in self.parameters]
        linkage, inline = "" if exported else "internal ", " alwaysinline" if inlined else ""
        body = "\n".join([*memory, *self.entry, *given, *self.lines])
        return f"define {linkage}i64 @{self.tree.name}({head}) nounwind{inline} {{\n{body}\n}}"

    def failure(self, node: ast.AST, why: str) -> BuildError:
        line = getattr(node, "lineno", 0)
        return BuildError(f"{self.tree.name}, line {line}: {why}: {ast.unparse(node)}")

    def new(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def leave(self, instruction: str) -> None:
        """End the block by an instruction; what follows in the text is in a block that nothing reaches."""
        self.lines.append(f"  {instruction}")
        self.start(self.label())

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                result = self.value(value)
                self.lines.append(f"  store i64 {result}, ptr %{name}.at")
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                result = self.binary(node, operator, self.variable(name), self.value(value))
                self.lines.append(f"  store i64 {result}, ptr %{name}.at")
            case ast.Expr(value=ast.Call() as inner):
                self.value(inner)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Return(value=value):
                result = "0" if value is None else self.value(value)
                self.leave(f"ret i64 {result}")
            case ast.If():
                self.choice(node)
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(test, body, None)
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=limits), orelse=[]
            ):
                self.counted(name, limits, node.body)
            case ast.Break() | ast.Continue():
                self.leave(f"br label %{self.loops[-1][isinstance(node, ast.Continue)]}")
            case _:
                raise self.failure(node, "not in the language")

    def choice(self, node: ast.If) -> None:
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(node.test, yes, no)
        self.start(yes)
        for statement in node.body:
            self.statement(statement)
        self.jump(after)
        self.start(no)
        for statement in node.orelse:
            self.statement(statement)
        self.jump(after)
        self.start(after)

    def loop(self, test: ast.expr, body: Sequence[ast.stmt], step: str | None) -> None:
        head, inside, onwards, after = (self.label() for _ in range(4))
        self.jump(head)
        self.start(head)
        self.branch(test, inside, after)
        self.start(inside)
        self.loops.append((after, onwards))
        for statement in body:
            self.statement(statement)
        self.loops.pop()
        self.jump(onwards)
        self.start(onwards)
        if step is not None:
            following = self.new(f"add i64 {self.variable(step)}, 1")
            self.lines.append(f"  store i64 {following}, ptr %{step}.at")
        self.jump(head)
        self.start(after)

    def counted(self, name: str, limits: Sequence[ast.expr], body: Sequence[ast.stmt]) -> None:
        """``for name in range(...)``: the end is computed once, the step is 1."""
        first = self.value(limits[0]) if len(limits) == 2 else "0"
        end = self.value(limits[-1])
        self.count += 1
        kept = f"end{self.count}"
        self.entry.append(f"  %{kept}.at = alloca i64")
        self.lines.append(f"  store i64 {end}, ptr %{kept}.at")
        self.lines.append(f"  store i64 {first}, ptr %{name}.at")
        self.variables.setdefault(name)
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.Lt()], [ast.Name(f"\0{kept}", ast.Load())])
        self.loop(test, body, name)

    def branch(self, test: ast.expr, yes: str, no: str, weights: str = "") -> None:
        """Go to one of two blocks; ``and``, ``or`` and ``not`` look at no more than they need."""
        match test:
            case ast.BoolOp(op=operator, values=values):
                for value in values[:-1]:
                    onwards = self.label()
                    if isinstance(operator, ast.And):
                        self.branch(value, onwards, no)
                    else:
                        self.branch(value, yes, onwards, weights)
                    self.start(onwards)
                self.branch(values[-1], yes, no, weights)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.branch(operand, no, yes)
            case ast.Call(func=ast.Name(id="unlikely"), args=[inner]):
                self.branch(inner, yes, no, ", !prof !0")
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if (
                type(operator) in _COMPARISONS
            ):
                one, other = self.value(left), self.value(right)
                bit = self.new(f"icmp {_COMPARISONS[type(operator)]} i64 {one}, {other}")
                self.lines.append(f"  br i1 {bit}, label %{yes}, label %{no}{weights}")
            case _:
                bit = self.new(f"icmp ne i64 {self.value(test)}, 0")
                self.lines.append(f"  br i1 {bit}, label %{yes}, label %{no}{weights}")

    def variable(self, name: str) -> str:
        return self.new(f"load i64, ptr %{name}.at")

    def value(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=int(number)):
                return str(int(number))
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(node, operator, self.value(left), self.value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.new(f"sub i64 0, {self.value(operand)}")
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.new(f"xor i64 -1, {self.value(operand)}")
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

    def named(self, node: ast.expr, name: str) -> str:
        if name.startswith("\0"):
            return self.variable(name[1:])
        if name in self.variables:
            return self.variable(name)
        if name not in self.constants:
            raise self.failure(node, "neither a variable nor a constant")
        return str(int(self.constants[name]))

    def binary(self, node: ast.AST, operator: ast.operator, one: str, other: str) -> str:
        if type(operator) not in _OPERATORS:
            raise self.failure(node, "an operator that is not in the language")
        return self.new(f"{_OPERATORS[type(operator)]} i64 {one}, {other}")

    def chosen(self, test: ast.expr, body: ast.expr, orelse: ast.expr) -> str:
        yes, no, after = self.label(), self.label(), self.label()
        self.count += 1
        kept = f"%choice{self.count}.at"
        self.entry.append(f"  {kept} = alloca i64")
        self.branch(test, yes, no)
        for label, value in ((yes, body), (no, orelse)):
            self.start(label)
            self.lines.append(f"  store i64 {self.value(value)}, ptr {kept}")
            self.jump(after)
        self.start(after)
        return self.new(f"load i64, ptr {kept}")

    def constant(self, node: ast.expr) -> int:
        """The number that an expression of constants is."""
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

    def place(self, arguments: Sequence[ast.expr]) -> str:
        base = self.value(arguments[0])
        if len(arguments) > 1 and not (isinstance(arguments[1], ast.Constant) and arguments[1].value == 0):
            base = self.new(f"add i64 {base}, {self.value(arguments[1])}")
        return self.new(f"inttoptr i64 {base} to ptr")

    def calling(self, node: ast.expr, name: str, arguments: Sequence[ast.expr]) -> str:
        match name:
            case "load":
                return self.new(f"load i64, ptr {self.place(arguments)}")
            case "load32":
                return self.new(f"sext i32 {self.new(f'load i32, ptr {self.place(arguments)}')} to i64")
            case "load8":
                return self.new(f"zext i8 {self.new(f'load i8, ptr {self.place(arguments)}')} to i64")
            case "store":
                value = self.value(arguments[2])
                self.lines.append(f"  store i64 {value}, ptr {self.place(arguments)}")
                return "0"
            case "stack":
                self.count += 1
                words = self.constant(arguments[0])
                self.entry.append(f"  %area{self.count} = alloca [{words} x i64], align 16")
                return self.new(f"ptrtoint ptr %area{self.count} to i64")
            case "address":
                symbol = arguments[0].value if isinstance(arguments[0], ast.Constant) else None
                if not isinstance(symbol, str):
                    raise self.failure(node, "expected the name of a symbol")
                self.symbols.add(symbol)
                return self.new(f"ptrtoint ptr @{symbol} to i64")
            case "call":
                function = self.new(f"inttoptr i64 {self.value(arguments[0])} to ptr")
                passed = ", ".join(f"i64 {self.value(argument)}" for argument in arguments[1:])
                return self.new(f"call i64 {function}({passed})")
            case "min" | "max":
                passed = ", ".join(f"i64 {self.value(argument)}" for argument in arguments)
                self.externals[f"llvm.s{name}.i64"] = 2
                return self.new(f"call i64 @llvm.s{name}.i64({passed})")
            case "leading_zeros":
                self.externals["llvm.ctlz.i64"] = -1
                return self.new(f"call i64 @llvm.ctlz.i64(i64 {self.value(arguments[0])}, i1 false)")
        passed = ", ".join(f"i64 {self.value(argument)}" for argument in arguments)
        if name not in self.known and self.externals.setdefault(name, len(arguments)) != len(arguments):
            raise self.failure(node, "called with another number of arguments before")
        return self.new(f"call i64 @{name}({passed})")


@dataclass(frozen=True)
class WordSource:
    """The source of straight code, such as translated functions: one object that several names may be asked of.

    text: everything that decides the code; `ir` gives the code itself and is asked only when it must be built.
    """

    name: str
    text: str
    ir: Callable[[], str] = field(compare=False, repr=False)
    externals: tuple[External, ...] = ()
    suffix: str = ".o"
    has_range: bool = False

    def object_code(self, symbol: str) -> bytes:
        """The object file."""
        module = parsed(self.name, self.ir().replace("@entry(", f"@{symbol}("))
        return codegen.finished(module, symbol, self.externals, improve=codegen.straighten)
