"""What Python has made of a function, written so that all processes of one Python write the same."""

import inspect
from opcode import hasconst, opmap
from types import CodeType
from typing import Any

RESUME, NOP, OF_CONSTANTS = opmap["RESUME"], opmap["NOP"], frozenset(hasconst)
FEW = 256
"""Constants whose numbers are a byte."""
TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_codes: dict[CodeType, str] = {}


class UnlikeError(Exception):
    """A function uses what has no place in a text: making the text says so better."""


def written(code: CodeType) -> str:
    """What Python made of a function, but for where that stood and its docstring.

    Raises UnlikeError for a function that has others inside, whose names nobody here looks up.
    """
    found = _codes.get(code)
    if found is None:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        if any(isinstance(value, CodeType) for value in code.co_consts):
            raise UnlikeError
        counts = (
            code.co_argcount,
            code.co_posonlyargcount,
            code.co_kwonlyargcount,
            code.co_flags & TAKES_REST,
        )
        made, constants = _without_docstring(code)
        listed = ", ".join(map(_constant, constants))
        found = _codes[code] = f"{code.co_name} {made.hex()} {names} {counts} [{listed}]"
    return found


def _without_docstring(code: CodeType) -> tuple[bytes, list[Any]]:
    """Instructions and constants as they are where Python leaves docstrings out on request.

    Then there is an instruction that does nothing in its place, and None is the first constant.
    """
    made, constants = bytearray(code.co_code), [*code.co_consts]
    first = made[::2].find(RESUME) * 2 + 2
    if made[first] == NOP:
        del made[first : first + 2]
    if constants and isinstance(constants[0], str) and len(constants) < FEW:
        kept = [None, *(value for value in constants[1:] if value is not None)]
        others = iter(range(1, FEW))
        numbers = [0, *(0 if value is None else next(others) for value in constants[1:])]
        for at in range(0, len(made), 2):
            if made[at] in OF_CONSTANTS:
                made[at + 1] = numbers[made[at + 1]]
        constants = kept
    return bytes(made), constants


def _constant(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"  # in whatever order a process has them
    return f"{type(value).__name__} {value!r}"
