"""What tells a loop nest from others without its text, which a parser takes several milliseconds to make.

It is what Python has made of the functions, and all that they refer to. Nests whose identities are equal have equal
text; nests that differ in words alone, as in an annotation, may have two. All processes of one Python agree on it,
whatever the order of their sets, whoever traces them, and however far Python optimises.
"""

import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any

import numpy as np

from jitkernels import states
from jitkernels.native.bytecode import UnlikeError, written
from jitkernels.native.source import (
    WRITERS,
    WRITTEN_OF,
    External,
    IRFunction,
    LaterIR,
    Table,
    Written,
    offset,
    vectors,
)

AS_THEY_ARE = frozenset({str, bytes, int, float, bool, type(None)})
"""Types whose values are told apart by how they are written."""


class Identity:
    """Of some fields of a nest: `text`, and the functions of other objects that are `called`."""

    def __init__(self, fields: Iterable[tuple[str, Any]]) -> None:
        """Raises UnlikeError for what only a text can tell."""
        self.called: list[External] = []
        self._seen: dict[int, int] = {}
        try:
            told = [f"{name} {self._value(value)}" for name, value in fields]
        except (ValueError, RecursionError):  # a name that has no value yet; functions nested without end
            raise UnlikeError from None
        self.text = "\n".join([str(sys.implementation.cache_tag), *told])

    def _value(self, value: Any) -> str:
        """What stands for a field, or for what a function refers to."""
        kind = type(value)
        if kind in AS_THEY_ARE:
            return f"{kind.__name__} {value!r}"
        if value is offset or value is vectors:
            return f"language.{value.__name__}"
        if kind is FunctionType:
            return self._function(value)
        if kind is tuple:
            return f"({', '.join(map(self._value, value))})"
        if isinstance(value, np.generic):
            return _number(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"{value.__module__}.{value.__qualname__}"
        if kind is External:
            self.called.append(value)
            return f"external {value.symbol} {value.result} {value.arguments}"
        if kind is IRFunction:
            return f"IR {value.symbol} {value.result} {value.arguments} {self._value(value.made)}"
        if kind is Written:
            state = states.state_of(*WRITERS, *WRITTEN_OF)
            return f"{_name_of_writer(value.writer)} {state} {self._given(value.given)}"
        if kind is LaterIR:
            return f"later {value.text!r}"
        if kind is Table:
            return f"table {[[*map(_number, row)] for row in value.rows]}"
        raise UnlikeError

    def _given(self, value: Any) -> str:
        """Plain values, and records of them."""
        if isinstance(value, tuple):
            return f"({', '.join(map(self._given, value))})"
        if is_dataclass(value):
            named = [f"{field.name} {self._given(getattr(value, field.name))}" for field in fields(value)]
            return f"{_name_of_writer(type(value))} {named}"
        if type(value) in AS_THEY_ARE:
            return self._value(value)
        raise UnlikeError

    def _function(self, function: FunctionType) -> str:
        """Its code, its flags, and the values of the names of other scopes that it uses."""
        if id(function) in self._seen:
            return f"function {self._seen[id(function)]}"
        self._seen[id(function)] = len(self._seen)
        if function.__defaults__ or function.__kwdefaults__:
            raise UnlikeError
        code, scope = function.__code__, function.__globals__
        uses = [self._value(cell.cell_contents) for cell in function.__closure__ or ()]
        uses += [
            f"{name} {'numpy' if scope[name] is np else self._value(scope[name])}"
            for name in code.co_names
            if name in scope
        ]
        marks = getattr(function, "fastmath", None), getattr(function, "instruction", "")
        return f"{written(code)} {marks} [{', '.join(uses)}]"


def _name_of_writer(value: Any) -> str:
    """What makes text, or a class that it is given: one of a module whose state is known."""
    place = value.__module__.removeprefix("jitkernels.").replace(".", "/")
    if f"{place}.py" not in WRITERS or "<" in value.__qualname__:
        raise UnlikeError
    return f"{value.__module__}.{value.__qualname__}"


def _number(value: Any) -> str:
    """One of NumPy's, to the last bit: how it is written is the user's choice."""
    return f"{type(value).__name__} {value.tobytes()!r}"
