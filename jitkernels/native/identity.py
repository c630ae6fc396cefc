"""What tells a loop nest from others without its text, which a parser takes several milliseconds to make.

It is what Python has made of the functions, and all that they refer to. Nests whose identities are equal have equal
text; nests that differ in words alone, as in an annotation, may have two. All processes of one Python agree on it.
"""

import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jitkernels.native.source import External, IRFunction, LaterIR, Table

AS_THEY_ARE = frozenset({str, bytes, int, float, bool, type(None)})
"""Types whose values are told apart by how they are written."""
_codes: dict[CodeType, str] = {}


class UnlikeError(Exception):
    """A function uses what has no place in a text: making the text says so better."""


class Identity:
    """Of some fields of a nest: `text`, and the functions of other objects that are `called`."""

    def __init__(self, fields: Iterable[tuple[str, Any]]) -> None:
        """Raises UnlikeError for what only a text can tell."""
        self.called: list[External] = []
        self._seen: dict[int, int] = {}
        try:
            told = [f"{name} {self._value(value)}" for name, value in fields]
        except ValueError:  # a name that has no value yet
            raise UnlikeError from None
        self.text = "\n".join([str(sys.implementation.cache_tag), *told])

    def _value(self, value: Any) -> str:
        """What stands for a field, or for what a function refers to."""
        kind = type(value)
        if kind in AS_THEY_ARE:
            return f"{kind.__name__} {value!r}"
        if kind is FunctionType:
            return self._function(value)
        if kind is tuple:
            return f"({', '.join(map(self._value, value))})"
        if isinstance(value, np.generic):
            return f"{kind.__name__} {value.tobytes()!r}"
        if isinstance(value, type):
            return f"{value.__module__}.{value.__qualname__}"
        if kind is External:
            self.called.append(value)
            return f"external {value.symbol} {value.result} {value.arguments}"
        if kind is IRFunction:
            return f"IR {value.symbol} {value.result} {value.arguments} {value.text!r}"
        if kind is LaterIR:
            return f"later {value.text!r}"
        if kind is Table:
            return f"table {value.rows!r}"
        raise UnlikeError

    def _function(self, function: Callable[..., Any]) -> str:
        """Its code, its flags, and the values of the names of other scopes that it uses."""
        if id(function) in self._seen:
            return f"function {self._seen[id(function)]}"
        self._seen[id(function)] = len(self._seen)
        code, scope = function.__code__, function.__globals__
        uses = [self._value(cell.cell_contents) for cell in function.__closure__ or ()]
        uses += [
            f"{name} {self._value(scope[name])}"
            for name in code.co_names
            if name in scope and scope[name] is not np
        ]
        return f"{_written(code)} {getattr(function, 'fastmath', None)} [{', '.join(uses)}]"


def _written(code: CodeType) -> str:
    """What Python made of a function, but for where that stood."""
    found = _codes.get(code)
    if found is None:
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        documented = bool(code.co_consts) and isinstance(code.co_consts[0], str)
        constants = ", ".join(map(_constant, (None, *code.co_consts[1:]) if documented else code.co_consts))
        found = _codes[code] = f"{code.co_name} {code.co_code.hex()} {names} {counts} [{constants}]"
    return found


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return _written(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_constant, value)))}}}"  # in whatever order a process has them
    return f"{type(value).__name__} {value!r}"
