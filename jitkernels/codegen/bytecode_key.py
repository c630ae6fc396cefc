"""What Python has made of a function, written so that all processes of one Python write the same."""

import functools
import inspect
from opcode import hasconst, opmap
from types import CodeType
from typing import Any

OF_CONSTANTS = frozenset(hasconst)
START, START_WITHOUT_DOCSTRING = (bytes([opmap["RESUME"], 0, *more]) for more in ((), (opmap["NOP"], 0)))
"""How functions begin, and where Python leaves docstrings out on request."""
FEW = 256
"""Constants whose numbers are a byte."""
TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


class UnlikeError(Exception):
    """A function uses what has no place in a text: making the text says so better."""


@functools.lru_cache(maxsize=4096)
def written(code: CodeType) -> str:
    """What Python made of a function, but for where that stood and its docstring.

    Constants are those that instructions use, in their order: no instruction uses a docstring, whose place changes the
    numbers of all others. Raises UnlikeError for a function that has others inside, whose names nobody here looks up.
    """
    constants = code.co_consts
    if len(constants) > FEW or any(isinstance(value, CodeType) for value in constants):
        raise UnlikeError
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & TAKES_REST)
    made = bytearray(code.co_code.replace(START_WITHOUT_DOCSTRING, START, 1))
    used = []
    for at in range(0, len(made), 2):
        if made[at] in OF_CONSTANTS:
            used.append(_constant(constants[made[at + 1]]))
            made[at + 1] = 0
    return f"{code.co_name} {made.hex()} {names} {counts} [{', '.join(used)}]"


def _constant(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"  # in whatever order a process has them
    return f"{type(value).__name__} {value!r}"
