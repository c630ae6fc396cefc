"""The syntax of functions that code is made from, which is that of what Python runs."""

import ast
import functools
import inspect
import linecache
import tokenize
from types import CodeType

from jitkernels.errors import BuildError
from jitkernels.native.bytecode import UnlikeError, written


def parsed(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """The syntax of a function, and how many lines of its file are before the first one of the syntax."""
    tree, lines_before = unproven(code)
    if not _is_text_of(tree, code):
        raise BuildError(
            f"{place_of(code)}: what Python runs as {code.co_name} is not made from what stands there now"
        )
    return tree, lines_before


def unproven(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """As `parsed`, for those who look themselves whether it is what Python runs."""
    where = place_of(code)
    try:
        lines, first = lines_of(code)
        text = "".join(lines)
        # Not dedented, as that fails where a string has lines that begin at the margin.
        inside = text[0].isspace()
        tree = ast.parse(f"if True:\n{text}" if inside else text).body[0]
    except OSError:
        raise BuildError(
            f"{where}: the text of {code.co_name} is not in a file: code is made from it"
        ) from None
    except (SyntaxError, tokenize.TokenError):
        raise BuildError(f"{where} cannot be read alone: expected a function written with 'def'") from None
    if inside:
        assert isinstance(tree, ast.If), "what was put before it"
        tree = tree.body[0]
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise BuildError(f"{where}: {code.co_name} is not written with 'def'")
    return tree, first - (2 if inside else 1)


def _is_text_of(tree: ast.FunctionDef, code: CodeType) -> bool:
    """Whether Python makes the same of this: keys tell what it has made, and the file may have changed since then."""
    try:
        own = written(code)
    except UnlikeError:  # its key is its text
        return True
    itself = "pass" if code.co_name in code.co_freevars else f"global {code.co_name}"
    head = f"def around({', '.join(code.co_freevars)}): {itself}"
    for imported in (
        "",
        *([f"import {', '.join(code.co_names)}"] if code.co_names else []),
    ):  # np.f() is other code then
        module = ast.parse(f"{imported}\n{head}")
        module.body[-1].body.append(tree)  # type: ignore[attr-defined]  # of the function around
        made = compile(module, code.co_filename, "exec", dont_inherit=True)
        (outer,) = (one for one in made.co_consts if isinstance(one, CodeType))
        try:
            if own in [written(one) for one in outer.co_consts if isinstance(one, CodeType)]:
                return True
        except UnlikeError:
            return False
    return False


def syntax_of(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """As `parsed`, for those who change nothing of it: what is in several numbers of lanes is read once."""
    return _parsed(code, code.co_filename)


@functools.lru_cache(maxsize=1024)
def _parsed(code: CodeType, _: str) -> tuple[ast.FunctionDef, int]:
    """Equal code may be in two files."""
    return parsed(code)


def lines_of(code: CodeType) -> tuple[list[str], int]:
    """The lines of a function and the number of the first.

    `inspect` reads them word by word, half a millisecond, after it has gone through all modules, which takes 50.
    """
    linecache.checkcache(code.co_filename)
    lines, first = linecache.getlines(code.co_filename), code.co_firstlineno
    if not 0 < first <= len(lines):
        return inspect.getsourcelines(code)
    margin = _margin(lines[first - 1])
    head = next((i for i in range(first - 1, len(lines)) if lines[i].lstrip()[:1] != "@"), len(lines) - 1)
    end = max(_last_line(code), head + 1)  # the latter where there is a docstring alone
    told = any(line.lstrip().startswith("def ") for line in lines[first - 1 : end])
    if not told or (end == head + 1 and "\n" in str(code.co_consts[0])):  # whose lines may begin anywhere
        return inspect.getsourcelines(code)
    while end < len(lines) and (
        _margin(lines[end]) > margin or lines[end].lstrip()[:1] in ("", ")", "]", "}")
    ):
        end += 1
    return lines[first - 1 : end], first


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    """The last line of a function that has instructions, those of functions inside included."""
    inside = [_last_line(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([code.co_firstlineno, *inside, *(line for _, _, line in code.co_lines() if line)])


def place_of(code: CodeType, line: int = 0) -> str:
    """A function, its file and a line of it, or else its first one, for messages."""
    return f"{code.co_qualname} ({code.co_filename}, line {line or code.co_firstlineno})"
