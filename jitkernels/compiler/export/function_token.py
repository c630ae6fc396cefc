"""The token of a compiled function: a hash of its code, of what that refers to, and of its options.

It is the same in every process that has the same function, so that tasks, and functions that come with pickles, are
recognized. Values that have no bytes of their own make a token that is never the same again.
"""

import dataclasses
import functools
import os
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import names_of
from jitkernels.core.hashing import sha256

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
"""Types of constants whose ``repr`` says what they are."""


def token_of(*values: Any) -> str:
    """The hexadecimal hash of functions and other values."""
    token: str = sha256("\n".join(TokenParts().of(values)).encode()).hexdigest()
    return token


class TokenParts:
    """The parts of a token in order. Functions that refer to each other are listed once."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, Any]] = {}
        """The values so far with their numbers, by identity: they are kept, since others could get their identities."""

    def of(self, value: Any) -> Iterator[str]:
        if isinstance(value, PLAIN):
            yield repr(value)
        elif isinstance(value, np.generic):
            yield f"number {value.dtype.descr} {value.tobytes().hex()}"
        elif type(value) is np.ndarray and not value.dtype.hasobject:
            content = sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            yield f"array {value.dtype.descr} {value.shape} {content}"
        elif isinstance(value, types.ModuleType):
            yield f"module {value.__name__}"
        elif id(value) in self._seen:
            yield f"again {self._seen[id(value)][0]}"
        else:
            self._seen[id(value)] = len(self._seen), value
            yield from self._compound(value)

    def _compound(self, value: Any) -> Iterator[str]:
        if isinstance(value, tuple | list):
            yield f"{type(value).__qualname__} {len(value)}"
            for element in value:
                yield from self.of(element)
        elif isinstance(value, Mapping):
            yield f"{type(value).__qualname__} {len(value)}"
            for key, element in value.items():
                yield from self.of(key)
                yield from self.of(element)
        elif isinstance(value, set | frozenset):
            yield from (type(value).__qualname__, *sorted(map(repr, value)))
        elif isinstance(value, type) and _is_named(value):
            yield f"class {value.__module__}.{value.__qualname__}"
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.CodeType):
            yield from self._code(value)
        elif isinstance(value, functools.partial):
            yield from self.of(("partial", value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType):
            yield from self.of(("method", value.__self__, value.__func__))
        elif hasattr(value, "__jitkernels_token__") and not isinstance(value, type):
            yield from self.of(value.__jitkernels_token__())
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield type(value).__qualname__
            for one in dataclasses.fields(value):
                yield from self.of(getattr(value, one.name))
        else:
            yield from self._other(value)

    def _function(self, function: types.FunctionType) -> Iterator[str]:
        yield f"function {function.__module__}.{function.__qualname__}"
        yield from self._code(function.__code__)
        yield from self.of((function.__defaults__, function.__kwdefaults__))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield f"variable {name}"
            try:
                yield from self.of(cell.cell_contents)
            except ValueError:  # not assigned yet
                yield "nothing"
        for name in names_of(function.__code__).names:
            if name in function.__globals__:
                yield f"global {name}"
                yield from self.of(function.__globals__[name])

    def _code(self, code: types.CodeType) -> Iterator[str]:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
        names = code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
        yield f"code {code.co_name} {code.co_code.hex()} {code.co_exceptiontable.hex()}"
        yield f"{names} {code.co_flags} {counts}"
        yield from self.of(code.co_consts)

    def _other(self, value: Any) -> Iterator[str]:
        """A value by its pickle, which for most objects is the same in all processes; only cloudpickle has all."""
        cloudpickle: Any = sys.modules.get("cloudpickle")
        try:
            yield f"{type(value).__qualname__} {sha256(cloudpickle.dumps(value)).hexdigest()}"
        except Exception:  # noqa: BLE001  # whatever a class raises that cannot be pickled
            yield f"{type(value).__qualname__} {os.urandom(16).hex()}"


def _is_named(kind: type) -> bool:
    """Whether a class is the one that its module names, which is no notebook's: its name says what it is."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is kind and kind.__module__ != "__main__"
