"""Break sites: the statements of a function that Python has to run, by lines and names that errors of a trace name."""

import ast
import re
from collections.abc import Iterable, Sequence
from types import CodeType, TracebackType
from typing import NamedTuple

from jitkernels.compiler.capture.impure import IMPURE_BUILTINS
from jitkernels.compiler.capture.rewrite.ast_builder import PART

Place = tuple[str, int]
"""A file, and a line of it."""
ONLY_PYTHON = (
    ast.Delete, ast.Global, ast.Nonlocal, ast.ClassDef, ast.Import, ast.ImportFrom, ast.AsyncFunctionDef, ast.TryStar,
)  # fmt: skip
"""Statements that stay as they are."""
HOISTED = "jk_hoisted"
"""AST attribute of the assignment of an operand that is computed before the statement that breaks."""
INTROSPECTS = frozenset({"locals", "vars", "eval", "exec", "dir", "breakpoint", "_getframe", "currentframe"})
"""Functions that see the variables of their caller: parts would hide some of them."""


class BreakSites(NamedTuple):
    """Lines that cannot be compiled, and variables that compiled code cannot take."""

    lines: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()

    def hits(self, node: ast.stmt) -> bool:
        """Whether Python has to run a statement; of loops, branches and the like, their heads."""
        if isinstance(node, ONLY_PYTHON):
            return True
        parts = heads(node)
        first, last = _lines_of(node, parts)
        if any(first <= line <= last for line in self.lines) and not hasattr(node, HOISTED):
            return True
        for part in parts:
            for inner in ast.walk(part):
                match inner:
                    case ast.Name(id=name) if name in self.names or name in IMPURE_BUILTINS or name == "super":
                        return True
                    case ast.Attribute(ctx=ast.Store() | ast.Del()):
                        return True
        return False


def heads(node: ast.stmt) -> list[ast.AST]:
    """The expressions of a statement that are no statements, or all of a simple one."""
    match node:
        case ast.If() | ast.While():
            return [node.test]
        case ast.For():
            return [node.target, node.iter]
        case ast.With():
            return [*node.items]
        case ast.Try():
            return [handler.type for handler in node.handlers if handler.type is not None]
    return [node]


def _lines_of(node: ast.stmt, parts: Sequence[ast.AST]) -> tuple[int, int]:
    if parts == [node]:
        return node.lineno, node.end_lineno or node.lineno
    ends = [inner.end_lineno or 0 for part in parts for inner in ast.walk(part) if isinstance(inner, ast.expr)]
    return node.lineno, max([node.lineno, *([] if isinstance(node, ast.Try) else ends)])


def lines_named(text: str, file: str) -> frozenset[int]:
    """The lines of a file that a message names."""
    return frozenset(int(line) for line in re.findall(rf"{re.escape(file)}:(\d+)", text))


def line_in(code: CodeType, error: BaseException, callers: Iterable[Place]) -> int:
    """The line of a function, not of its callees, that a trace could not handle; 0 if there is none.

    `callers`: the places of the calls, the innermost first, if a callee was refused.
    """
    last = max([code.co_firstlineno, *(line for line in own_lines(code))])
    inside = range(code.co_firstlineno, last + 1)
    for file, line in callers:
        if file == code.co_filename and line in inside:
            return line
    return _own_line(error.__traceback__, code, inside)


def _own_line(traceback: TracebackType | None, code: CodeType, inside: range) -> int:
    line, has_begun = 0, False
    while traceback is not None:
        own = traceback.tb_frame.f_code
        is_inside = own.co_filename == code.co_filename and traceback.tb_lineno in inside
        is_own = own.co_name == code.co_name or own.co_name.startswith((PART, "<"))
        if is_inside and is_own:
            line, has_begun = traceback.tb_lineno, True
        elif is_inside and has_begun:
            break  # a function defined in this one: the call of it is what breaks
        traceback = traceback.tb_next
    return line


def own_lines(code: CodeType) -> Iterable[int]:
    """The lines of code, nested functions included."""
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from own_lines(constant)


def _assigns(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(node))


def why_not(tree: ast.FunctionDef) -> str:
    """Why a function cannot be divided at its statements; empty if it can."""
    for node in ast.walk(tree):
        match node:
            case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.Match() | ast.TryStar():
                return f"it contains {type(node).__name__.lower()}"
            case ast.Name(id=name) if name in INTROSPECTS:
                return f"it calls {name}"
            case ast.Attribute(attr=name) if name in INTROSPECTS:
                return f"it calls {name}"
            case ast.ClassDef():
                return f"it defines the class {node.name}"
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() if _assigns(node):
                return "it assigns by := in a comprehension"
            case ast.FunctionDef() if node is not tree and any(isinstance(n, ast.Nonlocal) for n in ast.walk(node)):
                return f"{node.name} assigns to its variables"
    return ""
