"""The machine code of a source, one for all sources of the same text, however many there are.

A thousand size classes come to a few dozen loop nests. An implementation makes a new one for each class, with functions
of its own, and to make its text takes half a millisecond. So a nest is recognised by what its text would be made from,
and the first of its kind stands for all: there is one text, one hash and one object.
"""

from collections.abc import Callable, Hashable
from dataclasses import fields
from types import FunctionType
from typing import Any

import numpy as np

from jitkernels.kept import kept_property
from jitkernels.native import load
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import External, IRFunction, LaterIR, Source, symbol_of

FIELDS = tuple(field.name for field in fields(LoopNest))
AS_THEY_ARE = frozenset({str, bytes, tuple, type, type(None), External, IRFunction, LaterIR})
"""Types whose equal values have equal text; tuples are of strings and externals."""

BUILD, LOAD = 0.15, 0.002
"""Seconds that an object costs, by experience: from its source, and from the cache."""


class Code:
    """What a source becomes in this process, each part when it is first asked for."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @kept_property
    def symbol(self) -> str:
        """The unique name of the entry."""
        return symbol_of(self.source)

    @kept_property
    def address(self) -> int:
        """Of the entry. Raises BuildError when it cannot be built or loaded."""
        return load.address_of(self.source)

    @property
    def is_loaded(self) -> bool:
        return "address" in self.__dict__

    @property
    def seconds(self) -> float:
        """How long it takes to have it: loading at least."""
        return LOAD if self.is_loaded or load.is_built(self.source) else BUILD


_known: dict[Hashable, Code] = {}


def code_of(source: Source) -> Code:
    """The code of a source: that of the first one of the same text, where this can be told without making it.

    Nests of exact sizes are made for one attr each: those are not kept.
    """
    if type(source) is not LoopNest or source.exact:
        return Code(source)
    try:
        identity = _identity_of(source)
    except (_UnlikeError, ValueError):  # the latter for a name that has no value yet
        return Code(source)
    found = _known.get(identity)
    return found or _known.setdefault(identity, Code(source))


class _UnlikeError(Exception):
    """A function uses what has no place in a text: making the text says so better."""


def _identity_of(nest: LoopNest) -> Hashable:
    """Equal for two loop nests only if their texts are. Blocks are for threads, and stand in no other text."""
    seen: dict[int, int] = {}
    return tuple([_value(getattr(nest, name), seen) for name in FIELDS if name != "block" or nest.parallel])


def _value(value: Any, seen: dict[int, int]) -> Hashable:
    """What stands for a field of a nest, or for what a function refers to. Equal numbers may differ in their text."""
    kind = type(value)
    if kind is FunctionType:
        return _function(value, seen)
    if kind is int or kind is bool or kind is float:
        return kind, repr(value)
    if kind in AS_THEY_ARE:
        return value  # type: ignore[no-any-return]  # its type is one of those
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    raise _UnlikeError


def _function(function: Callable[..., Any], seen: dict[int, int]) -> Hashable:
    """Its code, its flags, and the values of the names of other scopes that it uses."""
    if id(function) in seen:
        return seen[id(function)]
    seen[id(function)] = len(seen)
    code, scope = function.__code__, function.__globals__
    found = [_value(cell.cell_contents, seen) for cell in function.__closure__ or ()]
    found += [
        (name, _value(scope[name], seen)) for name in code.co_names if name in scope and scope[name] is not np
    ]
    return code, getattr(function, "fastmath", None), *found
