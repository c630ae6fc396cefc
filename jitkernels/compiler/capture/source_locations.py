"""Source locations for messages: file and line of the user code that tracing cannot handle."""

import ast
import linecache
from types import CodeType, FrameType, TracebackType

from jitkernels.codegen.function_ast import tree_noted
from jitkernels.compiler.capture.rewrite.eliminate_jumps import VALUE
from jitkernels.compiler.capture.trace_context import NUMPY, is_package_file, user_frame
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.unsupported import UnknownSizeError


def place_of(error: BaseException, line: int = 0) -> str:
    """The file and line of user code that an error is about. `line`: of the enclosing loop or branch."""
    frame, line_of_error = _innermost(error.__traceback__)
    line_of_error, frame = getattr(error, "line", 0) or line_of_error or line, frame or user_frame()
    return f"{frame.f_code.co_filename}:{line_of_error}" if frame is not None and line_of_error else ""


def placed(error: BaseException, line: int = 0) -> UnsupportedError:
    """The error with its file and line. `line`: of the loop or branch that the error is about."""
    text, kind = str(error), UnknownSizeError if isinstance(error, UnknownSizeError) else UnsupportedError
    if getattr(error, "is_placed", False):
        return kind(text, is_placed=True)
    location = place_of(error, line)
    return kind(f"{text} ({location})" if location else text, is_placed=True)


def line_of_change(name: str, code: CodeType) -> int:
    """The last line on which a function changes a variable; that of its ``def`` if there is none."""
    tree = tree_noted(code)
    if tree is None:
        return line_of(name, line_of_def(code), code.co_filename)
    return max([_changes(node, name) for node in ast.walk(tree)]) or code.co_firstlineno


def line_of_def(code: CodeType) -> int:
    """The line of ``def``, after any decorators."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    heads = (number for number, text in enumerate(lines) if text.lstrip().startswith(("def ", "async def ")))
    return code.co_firstlineno + next(heads, 0)


def _innermost(traceback: TracebackType | None) -> tuple[FrameType | None, int]:
    """The innermost frame of user code that an error came from, and its line."""
    location: tuple[FrameType | None, int] = None, 0
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not is_package_file(file) and not file.startswith(NUMPY):
            location = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    return location


def line_of(name: str, line: int, file: str = "") -> int:
    """The line on which a loop or branch at `line` changes a variable; `line` if there is none."""
    frame = user_frame()
    if not file and frame is not None:
        file = frame.f_code.co_filename
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return line
    statements = [node for node in ast.walk(tree) if getattr(node, "lineno", 0) == line and hasattr(node, "body")]
    lines = [
        changed_line
        for statement in statements
        for node in ast.walk(statement)
        if (changed_line := _changes(node, name))
    ]
    return max(lines, default=line)


def _changes(node: ast.AST, name: str) -> int:
    """The line of a node that assigns a variable or an element of it, or calls a method of it; else 0."""
    match node:
        case ast.Return() if name.startswith(VALUE):
            return node.lineno
        case ast.Name(id=other, ctx=ast.Store()) if other == name:
            return node.lineno
        case ast.Subscript(value=ast.Name(id=other), ctx=ast.Store() | ast.Del()) if other == name:
            return node.lineno
        case ast.Call(func=ast.Attribute(value=ast.Name(id=other))) if other == name:
            return node.lineno
    return 0
