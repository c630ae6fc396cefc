"""The AST of functions that are compiled, verified against the bytecode that Python runs, and that as part of keys."""

import ast
import copy
import inspect
import linecache
import tokenize
from opcode import hasconst, opmap
from types import CodeType

from jitkernels.core.cached_property import cached_per_code
from jitkernels.core.canonical_text import UnlikeError, canonical_text
from jitkernels.errors import BuildError

OF_CONSTANTS = frozenset(hasconst)
START, START_WITHOUT_DOCSTRING = (bytes([opmap["RESUME"], 0, *more]) for more in ((), (opmap["NOP"], 0)))
"""The prologue of functions, and that of functions whose docstring ``-OO`` removed."""
MAX_KEYED_CONSTANTS = 256
"""The most constants, so that each index is one byte."""
TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@cached_per_code
def written(code: CodeType) -> str:
    """Return the canonical text of a code object, the same in all processes of one Python, without its docstring.

    Only constants that instructions use appear, in their order: a docstring, which no instruction uses, shifts the
    indices of all others. Raises UnlikeError for a function with nested functions, whose names are not resolved here.
    """
    constants = code.co_consts
    if len(constants) > MAX_KEYED_CONSTANTS or any(isinstance(value, CodeType) for value in constants):
        raise UnlikeError
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & TAKES_REST)
    bytecode = bytearray(code.co_code.replace(START_WITHOUT_DOCSTRING, START, 1))
    used = []
    for offset in range(0, len(bytecode), 2):
        if bytecode[offset] in OF_CONSTANTS:
            used.append(canonical_text(constants[bytecode[offset + 1]]))
            bytecode[offset + 1] = 0
    return f"{code.co_name} {bytecode.hex()} {names} {counts} [{', '.join(used)}]"


def parsed(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """Return the AST of a function, and the number of lines in its file before the AST's first one."""
    tree, lines_before = parse_unverified(code)
    if not _is_text_of(tree, code):
        raise BuildError(f"{place_of(code)}: the source of {code.co_name} has changed since Python loaded it")
    return tree, lines_before


@cached_per_code
def _noted(code: CodeType) -> list[ast.FunctionDef]:
    return []


def note_tree(code: CodeType, tree: ast.FunctionDef) -> None:
    """Note the AST of code that was made from it: no file has it. Its lines are those of a file."""
    _noted(code).append(tree)


def tree_noted(code: CodeType) -> ast.FunctionDef | None:
    """The AST that `note_tree` has noted."""
    return next(iter(_noted(code)), None)


def parse_unverified(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """As `parsed`, for callers that verify the source themselves."""
    noted = tree_noted(code)
    if noted is not None:
        return copy.deepcopy(noted), 0
    where = place_of(code)
    try:
        lines, first = lines_of(code)
        text = "".join(lines)
        # No dedent, which fails if a string has lines at the margin.
        inside = text[0].isspace()
        tree = ast.parse(f"if True:\n{text}" if inside else text).body[0]
    except OSError:
        raise BuildError(
            f"{where}: the source of {code.co_name} is not available: expected a function in a file"
        ) from None
    except (SyntaxError, tokenize.TokenError):
        raise BuildError(f"{where} cannot be read alone: expected a function written with 'def'") from None
    if inside:
        assert isinstance(tree, ast.If), "the prefix"
        tree = tree.body[0]
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise BuildError(f"{where}: {code.co_name} is not written with 'def'")
    return tree, first - (2 if inside else 1)


def _is_text_of(tree: ast.FunctionDef, code: CodeType) -> bool:
    """Return whether the AST compiles to the same bytecode: keys use the bytecode, and the file may have changed."""
    try:
        bytecode_text = written(code)
    except UnlikeError:  # its key is its source text
        return True
    itself = "pass" if code.co_name in code.co_freevars else f"global {code.co_name}"
    head = f"def around({', '.join(code.co_freevars)}): {itself}"
    for imported in (
        "",
        *([f"import {', '.join(code.co_names)}"] if code.co_names else []),
    ):  # np.f() compiles differently if np is imported
        module = ast.parse(f"{imported}\n{head}")
        module.body[-1].body.append(tree)  # type: ignore[attr-defined]  # of the function around
        module_code = compile(module, code.co_filename, "exec", dont_inherit=True)
        (outer,) = (constant for constant in module_code.co_consts if isinstance(constant, CodeType))
        try:
            if bytecode_text in [written(constant) for constant in outer.co_consts if isinstance(constant, CodeType)]:
                return True
        except UnlikeError:
            return False
    return False


def syntax_of(code: CodeType) -> tuple[ast.FunctionDef, int]:
    """As `parsed`, cached, for callers that do not modify the AST."""
    return _parsed(code)


@cached_per_code
def _parsed(code: CodeType) -> tuple[ast.FunctionDef, int]:
    return parsed(code)


def lines_of(code: CodeType) -> tuple[list[str], int]:
    """Return the lines of a function and the number of the first.

    `inspect` tokenizes them in half a millisecond, after a search of all modules that takes 50. Raises OSError for
    functions without a file: several share the name that stands for it, so that its lines may be those of others.
    """
    if code.co_filename == "<string>":
        raise OSError("could not get source code")
    linecache.checkcache(code.co_filename)
    lines, first = linecache.getlines(code.co_filename), code.co_firstlineno
    if not 0 < first <= len(lines):
        return inspect.getsourcelines(code)
    margin = _margin(lines[first - 1])
    head = next((i for i in range(first - 1, len(lines)) if lines[i].lstrip()[:1] != "@"), len(lines) - 1)
    end = max(_last_line(code), head + 1)  # a function of a docstring alone
    has_def = any(line.lstrip().startswith("def ") for line in lines[first - 1 : end])
    if not has_def or (end == head + 1 and "\n" in str(code.co_consts[0])):  # a docstring's lines may begin anywhere
        return inspect.getsourcelines(code)
    while end < len(lines) and (_margin(lines[end]) > margin or lines[end].lstrip()[:1] in ("", ")", "]", "}")):
        end += 1
    return lines[first - 1 : end], first


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _last_line(code: CodeType) -> int:
    """The last line of a function with instructions, including nested functions."""
    nested = [_last_line(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return max([code.co_firstlineno, *nested, *(line for _, _, line in code.co_lines() if line)])


def place_of(code: CodeType, line: int = 0) -> str:
    """A function, its file and line, for error messages."""
    return f"{code.co_qualname} ({code.co_filename}, line {line or code.co_firstlineno})"
