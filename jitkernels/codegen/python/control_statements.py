"""Control flow of both kernel languages: statements, branches and loops, emitted as LLVM IR basic blocks.

Variables are allocas that LLVM promotes to registers, so no phi nodes are emitted.
"""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.codegen.function_ast import place_of, syntax_of
from jitkernels.codegen.python.types import INT64, Value
from jitkernels.errors import BuildError

WEIGHTS = '!{!"branch_weights", i32 1, i32 1000}'


class ControlFlow(ABC):
    """Emits the body of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.code = function.__code__
        self.tree, self.lines_before = syntax_of(self.code)
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """Emit an expression."""

    @abstractmethod
    def truth(self, node: ast.expr) -> str:
        """Emit the truth value, as an i1, of an expression that is no ``and``, ``or`` or ``not``."""

    @abstractmethod
    def known(self, node: ast.expr) -> Any:
        """The Python value of a constant expression; `Ellipsis` if it is not constant."""

    @abstractmethod
    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Emit an assignment."""

    @abstractmethod
    def update(self, node: ast.AugAssign) -> None:
        """Emit an augmented assignment."""

    @abstractmethod
    def write(self, node: ast.AST, name: str, value: Value) -> None:
        """Emit a store to a variable."""

    @abstractmethod
    def give(self, node: ast.Return) -> None:
        """Emit a ``return``."""

    @abstractmethod
    def index(self, node: ast.expr) -> str:
        """Emit a loop limit, as an i64."""

    @abstractmethod
    def is_builtin(self, name: str) -> bool:
        """Return whether a name is Python's builtin."""

    def failure(self, node: ast.AST, why: str) -> BuildError:
        where = place_of(self.code, self.lines_before + getattr(node, "lineno", 0))
        text = ast.unparse(node).partition("\n")[0]
        return BuildError(f"{where}: {why}: {text}")

    def new(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def memory(self, kind: str) -> str:
        """The address of an unnamed alloca."""
        self.count += 1
        self.entry.append(f"  %kept{self.count} = alloca {kind}")
        return f"%kept{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"l{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def leave(self, instruction: str) -> None:
        """Terminate the block; the following text is in an unreachable block."""
        self.lines.append(f"  {instruction}")
        self.start(self.label())

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self.assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, value)
            case ast.AugAssign():
                self.update(node)
            case ast.Expr(value=ast.Call() as inner):
                self.value(inner)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Return():
                self.give(node)
            case ast.If(test=test, body=body, orelse=orelse):
                self.choice(test, body, orelse)
            case ast.While(test=test, body=body, orelse=[]):
                self.loop(test, body)
            case ast.For(
                target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=limits, keywords=[]), orelse=[]
            ) if 1 <= len(limits) <= 3 and self.is_builtin("range"):
                begin = self.index(limits[0]) if len(limits) > 1 else "0"
                end = self.index(limits[min(len(limits) - 1, 1)])
                step = self.index(limits[2]) if len(limits) == 3 else "1"
                self.counted(node, name, (begin, end, step))
            case ast.Break() | ast.Continue():
                label = self.loops[-1][isinstance(node, ast.Continue)]
                if not label:
                    raise self.failure(node, "a loop of vectors cannot be left early")
                self.leave(f"br label %{label}")
            case _:
                raise self.failure(node, "not in the language")

    def choice(self, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        decided = self.decided(test)
        if decided is not None:
            self.statements(body if decided else orelse)
            return
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(test, yes, no)
        for label, chosen in ((yes, body), (no, orelse)):
            self.start(label)
            self.statements(chosen)
            self.jump(after)
        self.start(after)

    def decided(self, test: ast.expr) -> bool | None:
        """The truth value of a constant condition; None if it is not constant."""
        match test:
            case ast.BoolOp(op=operator, values=values):
                parts = [self.decided(value) for value in values]
                ends = isinstance(operator, ast.Or)
                return ends if ends in parts else None if None in parts else not ends
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                part = self.decided(operand)
                return None if part is None else not part
        number = self.known(test)
        return None if number is Ellipsis else bool(number)

    def loop(self, test: ast.expr, body: Sequence[ast.stmt]) -> None:
        if self.decided(test) is False:
            return
        head, inside, after = (self.label() for _ in range(3))
        self.jump(head)
        self.start(head)
        self.branch(test, inside, after)
        self.start(inside)
        self.loops.append((after, head))
        self.statements(body)
        self.loops.pop()
        self.jump(head)
        self.start(after)

    def counted(
        self, node: ast.For, name: str, limits: tuple[str, str, str], hints: str = "", *, breaks: bool = True
    ) -> None:
        """Emit ``for name in range(...)``: limits are evaluated once; the induction variable is separate."""
        begin, end, step = limits
        if step == "0":
            raise self.failure(node, "expected a step that is not 0")
        counter = self.memory("i64")
        head, inside, onwards, after = (self.label() for _ in range(4))
        # Count from 0: then LLVM sees that range(first, first + n) has n iterations.
        shift = begin if step == "1" and begin != "0" else ""
        if shift:
            begin, end = "0", self.new(f"sub i64 {end}, {begin}")
        self.lines.append(f"  store i64 {begin}, ptr {counter}")
        self.jump(head)
        self.start(head)
        current = self.new(f"load i64, ptr {counter}")
        more = self.before(current, end, step)
        self.lines.append(f"  br i1 {more}, label %{inside}, label %{after}")
        self.start(inside)
        self.write(node, name, Value(INT64, self.new(f"add nsw i64 {shift}, {current}") if shift else current))
        self.loops.append((after if breaks else "", onwards))
        self.statements(node.body)
        self.loops.pop()
        self.jump(onwards)
        self.start(onwards)
        next_value = self.new(f"add nsw i64 {current}, {step}")
        self.lines += [f"  store i64 {next_value}, ptr {counter}", f"  br label %{head}{hints}"]
        self.start(after)

    def before(self, current: str, end: str, step: str) -> str:
        """Emit the loop condition. A step of 0 ends the loop."""
        if step.lstrip("-").isdigit():
            return self.new(f"icmp {'sgt' if step.startswith('-') else 'slt'} i64 {current}, {end}")
        ahead = [
            (self.new(f"icmp {sign} i64 {step}, 0"), self.new(f"icmp {sign} i64 {end}, {current}"))
            for sign in ("sgt", "slt")
        ]
        up, down = (self.new(f"and i1 {way}, {left}") for way, left in ahead)
        return self.new(f"or i1 {up}, {down}")

    def branch(self, test: ast.expr, yes: str, no: str, weights: str = "") -> None:
        """Emit a conditional branch with short-circuit ``and``, ``or`` and ``not``."""
        decided = self.decided(test)
        match test:
            case _ if decided is not None:
                self.jump(yes if decided else no)
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
            case _:
                bit = self.truth(test)
                self.lines.append(f"  br i1 {bit}, label %{yes}, label %{no}{weights}")
