"""A canonical text of a function's bytecode, the same in all processes of one Python: part of cache keys."""

import inspect
from opcode import hasconst, opmap
from types import CodeType

from jitkernels.core.cached_property import cached_per_code
from jitkernels.core.canonical_text import UnlikeError, canonical_text

OF_CONSTANTS = frozenset(hasconst)
START, START_WITHOUT_DOCSTRING = (bytes([opmap["RESUME"], 0, *more]) for more in ((), (opmap["NOP"], 0)))
"""The prologue of functions, and that of functions whose docstring ``-OO`` removed."""
MAX_KEYED_CONSTANTS = 256
"""The most constants, so that each index is one byte."""
TAKES_REST = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


@cached_per_code
def written(code: CodeType) -> str:
    """Return the canonical text of a code object, without its location and docstring.

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
