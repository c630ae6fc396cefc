"""From the structure of a call's arguments to the steps by which compiled code reaches arrays and numbers in them."""

import ctypes
import enum
import functools
import sys
import sysconfig
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.arguments import FOREIGN, Leaf, leaves_of
from jitkernels.frontends.captured import is_library, names_of
from jitkernels.graph.emit.objects import Step
from jitkernels.native.c_api import METHOD
from jitkernels.native.layout import Offset

EQUAL: tuple[type, ...] = (int, str, bytes, range)
"""Constants that others may be equal to."""
SAME: tuple[type, ...] = (
    type(None), bool, float, complex, frozenset, enum.Enum, type, types.BuiltinFunctionType, np.ufunc, np.dtype,
    type(Ellipsis), types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, type(np.sum),
)  # fmt: skip
"""Constants that cannot change, or only if the function could not tell."""
PARTS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "slice": (("start", "stop", "step"), (16, 24, 32)),
    "method": (("__func__", "__self__"), (16, 24)),
    "partial": (("func", "args", "keywords"), (16, 24, 32)),
}
"""Attributes of objects that are made of others, and bytes from the start of such an object to these."""
FUNCTION_PARTS = 56, 64
"""Bytes from the start of a function to its defaults."""
FUNCTION_CODE = 48
"""And to its code, which those who reload modules change in place."""
FUNCTION_GLOBALS, FUNCTION_CELLS = 16, 72
"""And to the table of its names and the tuple of its cells."""
HAVE_METHODS = hasattr(ctypes.pythonapi, METHOD)


class UnreachableError(Exception):
    """What compiled code does not look into."""


class Reaching:
    """Collects steps. `leaves`: the steps that give arrays and numbers, in order; `context`: what is compared with."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.leaves: list[int] = []
        self.context: list[Any] = []
        self._tables: dict[int, Table] = {}
        self._seen: dict[int, Any] = {}

    def argument(self, number: int, structure: Any, value: Any) -> None:
        """An argument of the call. Raises UnreachableError."""
        self._look(self._step("argument", number=number), structure, value)

    def default(self, structure: Any, value: Any) -> None:
        """A default, which stays the object that it is. Raises UnreachableError."""
        if type(structure) is Leaf:
            self.leaves.append(~self._word(value))
        elif structure[0] != "static":
            self._look(self._held(value), structure, value)

    def function(self, structure: Any, value: Any) -> None:
        """The function of the call itself, or what is called as one. Raises UnreachableError."""
        if type(value) is types.FunctionType:
            self.captured(structure, value)
        else:
            self._look(self._held(value), structure, value)

    def captured(self, structure: Any, function: types.FunctionType, at: int | None = None) -> None:
        """What a function refers to by name, which is looked up again. Raises UnreachableError.

        `at`: the step that gives it, if others of the same code will do.
        """
        if structure[0] == "static":
            return  # of NumPy, Python's library or this package, where no name is bound anew
        _, _, _, cells, defaults, keywords, names, read = structure
        code = function.__code__
        if not has_parts(function, (FUNCTION_CODE,), (code,)):
            raise UnreachableError
        held = self._held(function) if at is None else at
        self._step("same", self._step("part", held, FUNCTION_CODE), word=self._word(code))
        around = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if at is not None:
            self._step(
                "same", self._step("part", held, FUNCTION_GLOBALS), word=self._word(function.__globals__)
            )
            held_cells = self._step("part", held, FUNCTION_CELLS)
        for i, (cell, part) in enumerate(zip(around.values(), cells, strict=True)):
            if at is None:
                inner = self._step("cell", word=self._word(cell))
            else:
                inner = self._step("content", self._step("item", held_cells, i))
            self._look(inner, part, cell.cell_contents)
        self._defaults(
            function, held, defaults, keywords
        )  # behind the cells, as where arguments are taken apart
        table = function.__globals__
        for name in names_of(code).names:
            if name not in table:  # one of Python's own, until there is a global of this name
                self._table(table).missing.setdefault(name)
        for name, part in names:
            self._named(table, name, part)
        for chain, part in read:
            self._read(around, table, chain, part)

    def finish(self) -> None:
        """Add what is required of tables of names."""
        for table in self._tables.values():
            names: list[Any] = []
            for name in table.missing:
                names += sys.intern(name), table.table, None
            for name, value in table.names.items():
                names += sys.intern(name), value, value if type(value) in EQUAL else None
            if names:
                kind = "unchanged" if tell_changes() else "bound"
                self._step(kind, number=table.word, word=self._word(tuple(names)))
                # Instead of the version there is an address at first, which no version comes to.
                self._word(table.table)

    def _defaults(
        self, function: types.FunctionType, held: int, given: Sequence[Any], named: Sequence[Any]
    ) -> None:
        """Defaults of a function that is called: a tuple and a dict, which it has as long as nobody gives it others."""
        if not given and not named:
            return
        if not has_parts(function, FUNCTION_PARTS, (function.__defaults__, function.__kwdefaults__)):
            raise UnreachableError
        values, keywords = FUNCTION_PARTS
        if given:
            self._step("same", self._step("part", held, values), word=self._word(function.__defaults__))
            for part, one in zip(given, function.__defaults__ or (), strict=True):
                self.default(part, one)
        if named:
            structure = dict, tuple(name for name, _ in named), tuple(part for _, part in named)
            self._look(self._step("part", held, keywords), structure, function.__kwdefaults__)

    def _table(self, table: dict[str, Any]) -> "Table":
        if id(table) not in self._tables:
            self._tables[id(table)] = Table(table, self._word(table))
        return self._tables[id(table)]

    def _named(self, table: dict[str, Any], name: str, part: Any) -> None:
        """What stands in a table under a name: for good, or an array or number, which may be another each time."""
        value = table[name]
        is_changed = type(value) in (list, tuple, dict)  # maybe, in itself
        is_static = type(part) is not Leaf and part[0] == "static" and not is_changed
        if is_static or (type(part) is not Leaf and type(value) is types.FunctionType):
            self._table(table).names[name] = value
            if part[0] == "function":
                self._function(part, value)
            return
        word = self._word(sys.intern(name))
        self._look(self._step("global", number=self._table(table).word, word=word), part, value)

    def _read(
        self, around: Mapping[str, types.CellType], table: dict[str, Any], chain: tuple[str, ...], part: Any
    ) -> None:
        """An attribute of a module or class, or of one in it; the first one is one of the names of the function."""
        first, *rest = chain
        owner = around[first].cell_contents if first in around else table[first]
        for name in rest[:-1]:
            owner = self._attribute(owner, name, None)
        self._attribute(owner, rest[-1], part)

    def _attribute(self, owner: Any, name: str, part: Any) -> Any:
        """One of a module or class that stays what it is; without a structure, this does too."""
        value = getattr(owner, name)
        if isinstance(owner, types.ModuleType) and name in vars(owner):
            self._named(vars(owner), name, ("static",) if part is None else part)
            return value
        if not isinstance(owner, type) or (part is not None and part[0] != "static"):
            raise UnreachableError
        self._static(self._step("attribute", self._held(owner), word=self._word(sys.intern(name))), value)
        return value

    def _step(self, kind: str, of: int = 0, number: int = 0, word: int = 0) -> int:
        self.steps.append(Step(kind, of, number, word))
        return len(self.steps) - 1

    def _held(self, value: Any) -> int:
        return self._step("held", word=self._word(value))

    def _word(self, value: Any) -> int:
        self.context.append(value)
        return len(self.context) - 1

    def _function(self, structure: Any, function: Any) -> None:
        """A function that is there: what it refers to."""
        if type(function) is not types.FunctionType:
            raise UnreachableError
        if id(function) not in self._seen or any(leaves_of(structure)):
            self._seen[id(function)] = function
            self.captured(structure, function)

    def _look(self, step: int, structure: Any, value: Any) -> None:
        if type(structure) is Leaf:
            if structure == FOREIGN:
                raise UnreachableError
            self.leaves.append(step)
            return
        kind = structure[0]
        inner = getattr(type(value), "__jitkernels_traced__", None)
        if kind == "function" and self._is_alike(structure, value):
            self._step("type", step, word=self._word(types.FunctionType))
            self.captured(structure, value, step)
        elif inner is not None or kind == "function":
            self._step("same", step, word=self._word(value))
            called = value if inner is None else inner(value)
            if kind == "function":
                self._function(structure, called)
            else:
                self._look(self._held(called), structure, called)
        elif kind == "static":
            self._static(step, value)
        elif kind in (tuple, list, "named"):
            parts = structure[2] if kind == "named" else structure[1]
            self._typed(step, type(value), len(parts))
            for i, (part, one) in enumerate(zip(parts, value, strict=True)):
                inner = self._step("element" if kind is list else "item", step, i)
                self._look(inner, part, one)
        elif kind is dict:
            self._typed(step, dict, len(structure[1]))
            for key, part in zip(structure[1], structure[2], strict=True):
                self._look(self._step("value", step, word=self._word(_own(value, key))), part, value[key])
        elif kind in PARTS:
            self._parts(step, structure, value)
        else:
            self._object(step, structure, value)

    def _is_alike(self, structure: Any, value: Any) -> bool:
        """Whether another function of the same code does as well, as where each call is given a new one."""
        if type(value) is not types.FunctionType or id(value) in self._seen:
            return False
        self._seen[id(value)] = value
        parts = value.__globals__, value.__code__, value.__closure__
        around, read = value.__code__.co_freevars, structure[-1]
        return has_parts(value, (FUNCTION_GLOBALS, FUNCTION_CODE, FUNCTION_CELLS), parts) and not any(
            chain[0] in around for chain, _ in read
        )

    def _typed(self, step: int, kind: type, count: int) -> None:
        self._step("type", step, word=self._word(kind))
        self._step("size", step, count)

    def _static(self, step: int, value: Any) -> None:
        if type(value) in (list, tuple):
            self._typed(step, type(value), len(value))
            for i, one in enumerate(value):
                self._static(self._step("element" if type(value) is list else "item", step, i), one)
        elif type(value) is dict:
            self._typed(step, dict, len(value))
            for key, one in value.items():
                self._static(self._step("value", step, word=self._word(_own(value, key))), one)
        elif type(value) in EQUAL or (type(value) is float and value and value == value):
            self._step("equal", step, word=self._word(value))
        elif (
            isinstance(value, SAME)
            or type(value) is np.ndarray
            or (type(value) is types.FunctionType and is_library(value))
        ):
            self._step("same", step, word=self._word(value))
        else:
            raise UnreachableError

    def _parts(self, step: int, structure: Any, value: Any) -> None:
        """An object of a type of Python's that is made of others."""
        names, places = PARTS[structure[0]]
        values = [getattr(value, name) for name in names]
        if not has_parts(value, places, values):
            raise UnreachableError
        self._step("type", step, word=self._word(type(value)))
        for place, part, one in zip(places, structure[1:], values, strict=True):
            self._look(self._step("part", step, place), part, one)

    def _object(self, step: int, structure: Any, value: Any) -> None:
        _, kind, names, parts, methods = structure
        if type(value) is not kind or not all(_is_own(value, name) for name in names):
            raise UnreachableError
        self._step("type", step, word=self._word(kind))
        for name, part in zip(names, parts, strict=True):
            inner = self._step("attribute", step, word=self._word(sys.intern(name)))
            self._look(inner, part, getattr(value, name))
        for name, (what, part) in methods:
            word = self._word(sys.intern(name))
            if what == "value":
                self._static(self._step("attribute", step, word=word), part.value)
            elif HAVE_METHODS:
                self._look(self._step("method", step, word=word), part, getattr(value, name).__func__)
            else:
                raise UnreachableError


class Table:
    """The names of a module that have to be bound to what they are, or not at all. `word`: of the context."""

    def __init__(self, table: dict[str, Any], word: int) -> None:
        self.table, self.word = table, word
        self.names: dict[str, Any] = {}
        self.missing: dict[str, None] = {}


def _is_own(value: Any, name: str) -> bool:
    """Whether an object keeps an attribute itself."""
    descriptor = getattr(type(value), name, None)
    if isinstance(descriptor, types.MemberDescriptorType):
        return True
    return name in getattr(value, "__dict__", ()) and not hasattr(descriptor, "__set__")


def has_parts(value: Any, places: Sequence[int], parts: Sequence[Any]) -> bool:
    """Whether an object has others at these places; none is no part."""
    found = [ctypes.c_int64.from_address(id(value) + place).value for place in places]
    return all(
        word in ((0, id(None)) if part is None else (id(part),))
        for word, part in zip(found, parts, strict=True)
    )


@functools.cache
def tell_changes() -> bool:
    """Whether dicts have a number that is new after each change, where compiled code looks for it.

    So do those of Python 3.11 to 3.13; others have something else there, which this shows, or are laid out differently.
    """
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    one: dict[str, int] = {}
    seen = [_version(one)]
    for change in (
        lambda: one.update(a=1), lambda: one.update(a=2), lambda: one.update(b=1), lambda: one.pop("a"), one.clear,
    ):  # fmt: skip
        change()
        seen.append(_version(one))
    return len({*seen, _version({"a": 1})}) == len(seen) + 1 and _version(one) == seen[-1]


def _version(one: dict[str, int]) -> int:
    return ctypes.c_uint64.from_address(id(one) + Offset.DICT_VERSION).value


def _own(value: dict[Any, Any], key: Any) -> Any:
    """The very key that a dict has; a name or a number, which others are the same as."""
    if type(key) not in (str, int):
        raise UnreachableError
    return next(one for one in value if one == key)


def sources(objects: Sequence[Any], places: Sequence[int]) -> list[tuple[int, str]] | None:
    """For each array and number its place and type; None where code is not made for one."""
    found = []
    for one, place in zip(objects, places, strict=True):
        if type(one) is np.ndarray:
            found.append((place, ""))
        elif type(one) in (float, int):
            found.append((place, type(one).__name__))
        elif isinstance(one, np.generic):
            found.append((place, one.dtype.name))
        else:
            return None
    return found
