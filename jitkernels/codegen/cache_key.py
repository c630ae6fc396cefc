"""Cache keys of range kernels from bytecode: equal keys imply equal generated text, which takes milliseconds to parse.

A key consists of the functions' bytecode and all that they refer to. Kernels that differ only in words, as in an
annotation, may have two keys. All processes of one Python compute the same key, whatever the order of their sets,
tracing, and optimization level.
"""

import sys
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from jitkernels.codegen.function_ast import written
from jitkernels.codegen.parameters import struct_fields, used_fields
from jitkernels.codegen.source_protocol import (
    WRITERS,
    WRITTEN_OF,
    DeferredIR,
    External,
    IRFunction,
    Table,
    Written,
    offset,
    vectors,
)
from jitkernels.core import source_hash
from jitkernels.core.canonical_text import UnlikeError, canonical_text

WHOLE = frozenset({External, IRFunction, Written, DeferredIR, Table})
"""Structs with a text of their own."""


class Identity:
    """The key of some fields of a kernel: its `text`, and the external functions that are `called`."""

    def __init__(self, fields: Iterable[tuple[str, Any]]) -> None:
        """Raises UnlikeError if only the generated text identifies a value."""
        self.called: list[External] = []
        self._seen: dict[int, int] = {}
        try:
            described = [f"{name} {self._value(value)}" for name, value in fields]
        except (ValueError, RecursionError):  # an unbound closure variable; unbounded recursion
            raise UnlikeError from None
        self.text = "\n".join([str(sys.implementation.cache_tag), *described])

    def _value(self, value: Any) -> str:
        """The text of a field, or of a value that a function refers to."""
        return canonical_text(value, self._other)

    def _other(self, value: Any) -> str:
        kind = type(value)
        if value is offset or value is vectors:
            return f"language.{value.__name__}"
        if kind is FunctionType:
            return self._function(value)
        if isinstance(value, type) and issubclass(value, np.generic):
            return f"{value.__module__}.{value.__qualname__}"
        struct = struct_fields(value)
        if struct is not None:
            return f"struct {value.__name__} {[*struct]}"
        if kind is External:
            self.called.append(value)
            return f"external {value.symbol} {value.result} {value.arguments}"
        if kind is IRFunction:
            return f"IR {value.symbol} {value.result} {value.arguments} {self._value(value.definition)}"
        if kind is Written:
            state = source_hash.state_of(*WRITERS, *WRITTEN_OF)
            return f"{_name_of_writer(value.writer)} {state} {canonical_text(value.arguments, _struct)}"
        if kind is DeferredIR:
            return f"later {value.text!r}"
        if kind is Table:
            return f"table {canonical_text(value.rows)}"
        raise UnlikeError

    def _function(self, function: FunctionType) -> str:
        """The text of a function: bytecode, flags, and the global and closure values that it uses."""
        if id(function) in self._seen:
            return f"function {self._seen[id(function)]}"
        self._seen[id(function)] = len(self._seen)
        if function.__defaults__ or function.__kwdefaults__:
            raise UnlikeError
        code, scope = function.__code__, function.__globals__
        uses = [self._used(cell.cell_contents, code) for cell in function.__closure__ or ()]
        uses += [
            f"{name} {'numpy' if scope[name] is np else self._used(scope[name], code)}"
            for name in code.co_names
            if name in scope
        ]
        marks = getattr(function, "fastmath", None), getattr(function, "instruction", "")
        return f"{written(code)} {marks} [{', '.join(uses)}]"

    def _used(self, value: Any, code: CodeType) -> str:
        """The text of a value from around a function: of a struct, that of the fields that the function may read."""
        fields = None if type(value) in WHOLE else used_fields(value, code)
        if fields is None:
            return self._value(value)
        return f"fields {[(name, self._used(field, code)) for name, field in fields.items()]}"


def _name_of_writer(value: Any) -> str:
    """The qualified name of an IR writer or its struct class, which must be in a module with a known source hash."""
    module_path = value.__module__.removeprefix("jitkernels.").replace(".", "/")
    if f"{module_path}.py" not in WRITERS or "<" in value.__qualname__:
        raise UnlikeError
    return f"{value.__module__}.{value.__qualname__}"


def _struct(value: Any) -> str:
    """The text of a struct of an IR writer."""
    if not is_dataclass(value):
        raise UnlikeError
    named = [f"{field.name} {canonical_text(getattr(value, field.name), _struct)}" for field in fields(value)]
    return f"{_name_of_writer(type(value))} {named}"
