"""What both languages share: statements, branches and loops, written as LLVM IR block by block.

Variables live in memory of their own until LLVM puts them in registers, so nothing here knows of phi nodes.
"""

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.errors import BuildError
from jitkernels.native.language.types import INT64, Value
from jitkernels.native.parsing import place_of, syntax_of

WEIGHTS = '!{!"branch_weights", i32 1, i32 1000}'


class ControlFlow(ABC):
    """Writes the body of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.code = function.__code__
        self.tree, self.lines_before = syntax_of(self.code)
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.count = 0
        self.loops: list[tuple[str, str]] = []

    @abstractmethod
    def value(self, node: ast.expr) -> Value:
        """Write what computes an expression."""

    @abstractmethod
    def truth(self, node: ast.expr) -> str:
        """Write what computes whether an expression that is no ``and``, ``or`` or ``not`` holds, as an i1."""

    @abstractmethod
    def known(self, node: ast.expr) -> Any:
        """The Python value that an expression has whatever the arguments are; `Ellipsis` if it has none."""

    @abstractmethod
    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """Write an assignment."""

    @abstractmethod
    def update(self, node: ast.AugAssign) -> None:
        """Write an assignment such as ``+=``."""

    @abstractmethod
    def write(self, node: ast.AST, name: str, value: Value) -> None:
        """Give a variable a value."""

    @abstractmethod
    def give(self, node: ast.Return) -> None:
        """Write a ``return``."""

    @abstractmethod
    def index(self, node: ast.expr) -> str:
        """A limit of a loop, as LLVM's text for an i64."""

    @abstractmethod
    def is_builtin(self, name: str) -> bool:
        """Whether a name means what Python has it for."""

    def failure(self, node: ast.AST, why: str) -> BuildError:
        where = place_of(self.code, self.lines_before + getattr(node, "lineno", 0))
        text = ast.unparse(node).partition("\n")[0]
        return BuildError(f"{where}: {why}: {text}")

    def new(self, expression: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {expression}")
        return f"%v{self.count}"

    def memory(self, kind: str) -> str:
        """The address of a variable without a name."""
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
        """End the block by an instruction; what follows in the text is in a block that nothing reaches."""
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
                target=ast.Name(id=name),
                iter=ast.Call(func=ast.Name(id="range"), args=limits, keywords=[]),
                orelse=[],
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
        """Whether a condition holds that does, or does not, whatever the arguments are."""
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
        """``for name in range(...)``: limits are computed once, and the count is apart from the variable."""
        begin, end, step = limits
        if step == "0":
            raise self.failure(node, "expected a step that is not 0")
        counter = self.memory("i64")
        head, inside, onwards, after = (self.label() for _ in range(4))
        # From 0 on: of a range(first, first + n) LLVM sees n steps then, where it would see what limits them.
        shift = begin if step == "1" and begin != "0" else ""
        if shift:
            begin, end = "0", self.new(f"sub i64 {end}, {begin}")
        self.lines.append(f"  store i64 {begin}, ptr {counter}")
        self.jump(head)
        self.start(head)
        here = self.new(f"load i64, ptr {counter}")
        more = self.before(here, end, step)
        self.lines.append(f"  br i1 {more}, label %{inside}, label %{after}")
        self.start(inside)
        self.write(node, name, Value(INT64, self.new(f"add nsw i64 {shift}, {here}") if shift else here))
        self.loops.append((after if breaks else "", onwards))
        self.statements(node.body)
        self.loops.pop()
        self.jump(onwards)
        self.start(onwards)
        following = self.new(f"add nsw i64 {here}, {step}")
        self.lines += [f"  store i64 {following}, ptr {counter}", f"  br label %{head}{hints}"]
        self.start(after)

    def before(self, here: str, end: str, step: str) -> str:
        """Whether a loop goes on. One whose step turns out to be 0 does not."""
        if step.lstrip("-").isdigit():
            return self.new(f"icmp {'sgt' if step.startswith('-') else 'slt'} i64 {here}, {end}")
        ahead = [
            (self.new(f"icmp {sign} i64 {step}, 0"), self.new(f"icmp {sign} i64 {end}, {here}"))
            for sign in ("sgt", "slt")
        ]
        up, down = (self.new(f"and i1 {way}, {left}") for way, left in ahead)
        return self.new(f"or i1 {up}, {down}")

    def branch(self, test: ast.expr, yes: str, no: str, weights: str = "") -> None:
        """Go to one of two blocks; ``and``, ``or`` and ``not`` look at no more than they need."""
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
