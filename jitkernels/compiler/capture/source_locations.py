"""Where in a function of users something is that no code is made for: the file, the line, and what is written there."""

import ast
import linecache
from types import CodeType, FrameType, TracebackType

from jitkernels.frontends.rewriting.jumps import VALUE
from jitkernels.frontends.tracer import NUMPY, is_ours, user_frame
from jitkernels.graph.construct import UnknownError


def place_of(error: BaseException, line: int = 0) -> str:
    """The file and line of the function that an error is about. `line`: of the loop or branch that it is in."""
    frame, at = _innermost(error.__traceback__)
    at, frame = getattr(error, "line", 0) or at or line, frame or user_frame()
    return f"{frame.f_code.co_filename}:{at}" if frame is not None and at else ""


def placed(error: BaseException, line: int = 0) -> UnknownError:
    """An error that tells its file and line. `line`: of the loop or branch, where it was raised for all of this."""
    text = str(error)
    if getattr(error, "is_placed", False):
        return UnknownError(text, is_placed=True)
    place = place_of(error, line)
    return UnknownError(f"{text} ({place})" if place else text, is_placed=True)


def line_of_def(code: CodeType) -> int:
    """The line of ``def``, which may have decorators before it."""
    lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
    heads = (number for number, text in enumerate(lines) if text.lstrip().startswith(("def ", "async def ")))
    return code.co_firstlineno + next(heads, 0)


def _innermost(traceback: TracebackType | None) -> tuple[FrameType | None, int]:
    """The frame of users from which an error came, and its line."""
    found: tuple[FrameType | None, int] = None, 0
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not is_ours(file) and not file.startswith(NUMPY):
            found = traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def line_of(name: str, line: int, file: str = "") -> int:
    """The line on which what begins at a line, a loop or branch, does something to a variable; else this line."""
    frame = user_frame()
    if not file and frame is not None:
        file = frame.f_code.co_filename
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return line
    inside = [one for one in ast.walk(tree) if getattr(one, "lineno", 0) == line and hasattr(one, "body")]
    found = [at for part in inside for one in ast.walk(part) if (at := _changes(one, name))]
    return max(found, default=line)


def _changes(node: ast.AST, name: str) -> int:
    """The line of a node that assigns to a variable, or to a part of it, or calls a method of it; else 0."""
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
