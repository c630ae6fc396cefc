"""Object guards: the steps by which a compiled entry walks from a call's objects to its arrays and numbers."""

import ctypes
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import Constant, names_of
from jitkernels.compiler.capture.native.native_functions import is_native
from jitkernels.compiler.capture.numba_dispatchers import as_python, ufunc_source
from jitkernels.compiler.capture.pytree.flatten import FOREIGN, Leaf, leaves_of
from jitkernels.compiler.capture.random import generator_states
from jitkernels.compiler.capture.structured import field_views
from jitkernels.compiler.dispatch.globals_table import GlobalsTable, dicts_have_versions
from jitkernels.compiler.dispatch.object_layout import (
    EQUAL,
    FUNCTION_CELLS,
    FUNCTION_CODE,
    FUNCTION_GLOBALS,
    FUNCTION_PARTS,
    PARTS,
    SAME,
    has_parts,
    is_library_function,
    is_own,
)
from jitkernels.compiler.ir.call_abi import AccessStep, FieldStep
from jitkernels.runtime.abi_layout import Offset
from jitkernels.runtime.c_api import METHOD, OPTIONAL_ATTRIBUTE

HAVE_METHODS = hasattr(ctypes.pythonapi, METHOD)


class UnreachableError(Exception):
    """A call has an argument, free variable or result that a compiled entry cannot access or build."""


class ObjectAccessBuilder:
    """Collects access steps. `leaves`: the steps that load arrays and numbers; `context`: objects to compare with."""

    def __init__(self) -> None:
        self.steps: list[AccessStep] = []
        self.leaves: list[int] = []
        self.context: list[Any] = []
        self.locks: list[int] = []
        self._generators: list[int] = []
        self._tables: dict[int, GlobalsTable] = {}
        self._seen: dict[int, Any] = {}

    def argument(self, number: int, structure: Any, value: Any) -> None:
        """An argument of the call. Raises UnreachableError."""
        self._look(self._step("argument", number=number), structure, value)

    def default(self, structure: Any, value: Any) -> None:
        """A default value, a fixed object. Raises UnreachableError."""
        if type(structure) is Leaf:
            self.leaves.append(~self._word(value))
        elif structure[0] != "static":
            self._look(self._held(value), structure, value)

    def function(self, structure: Any, value: Any) -> None:
        """The called function, or the callable in its place. Raises UnreachableError."""
        if type(value) is types.FunctionType:
            self.captured(structure, value)
        else:
            self._look(self._held(value), structure, value)

    def captured(self, structure: Any, function: types.FunctionType, at: int | None = None) -> None:
        """The globals and free variables of a function, looked up in each call. Raises UnreachableError.

        `at`: the step that loads the function, if any function with the same code is accepted.
        """
        if structure[0] == "static":
            return  # a library function: its globals do not change
        _, _, _, cells, defaults, keywords, names, read = structure
        code = function.__code__
        held = self._held(function) if at is None else at
        self.has_code(function, code, held)
        around = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if at is not None:
            self._step("same", self._step("part", held, FUNCTION_GLOBALS), word=self._word(function.__globals__))
            held_cells = self._step("part", held, FUNCTION_CELLS)
        for i, (cell, part) in enumerate(zip(around.values(), cells, strict=True)):
            if at is None:
                inner = self._step("cell", word=self._word(cell))
            else:
                inner = self._step("content", self._step("item", held_cells, i))
            self._look(inner, part, cell.cell_contents)
        self._defaults(function, held, defaults, keywords)  # behind the cells, as where arguments are taken apart
        table = function.__globals__
        for name in names_of(code).names:
            if name not in table:  # one of Python's own, until there is a global of this name
                self.table(table).missing.setdefault(name)
        for name, part in names:
            self._named(table, name, part)
        for chain, part in read:
            self._read(around, table, chain, part)

    def finish(self) -> None:
        """Append the guards on globals dicts."""
        for table in self._tables.values():
            names: list[Any] = []
            for name in table.missing:
                names += sys.intern(name), table.table, None
            for name, value in table.names.items():
                names += sys.intern(name), value, value if type(value) in EQUAL else None
            if names:
                kind = "unchanged" if dicts_have_versions() else "bound"
                self._step(kind, number=table.word, word=self._word(tuple(names)))
                # The version slot starts with an address, which no version equals: the first call compares.
                self._word(table.table)

    def _defaults(self, function: types.FunctionType, held: int, given: Sequence[Any], named: Sequence[Any]) -> None:
        """Guard and walk the defaults of a called function: a tuple and a dict, which callers may replace."""
        if not given and not named:
            return
        if not has_parts(function, FUNCTION_PARTS, (function.__defaults__, function.__kwdefaults__)):
            raise UnreachableError("defaults of a function that compiled code does not find")
        values, keywords = FUNCTION_PARTS
        if given:
            self._step("same", self._step("part", held, values), word=self._word(function.__defaults__))
            for part, one in zip(given, function.__defaults__ or (), strict=True):
                self.default(part, one)
        if named:
            structure = dict, tuple(name for name, _ in named), tuple(part for _, part in named)
            self._look(self._step("part", held, keywords), structure, function.__kwdefaults__)

    def attribute_of(self, value: Any, name: str) -> int:
        """The step that loads an attribute of a fixed object."""
        return self._step("attribute", self._held(value), word=self._word(sys.intern(name)))

    def same(self, step: int, value: Any) -> None:
        """Guard that a step loads this object."""
        self._step("same", step, word=self._word(value))

    def has_code(self, function: types.FunctionType, code: types.CodeType, at: int | None = None) -> None:
        """Guard the code of a function, a fixed one without a step that loads it. Raises UnreachableError."""
        if not has_parts(function, (FUNCTION_CODE,), (code,)):
            raise UnreachableError("a function whose code is not where compiled code looks")
        self.same(self._step("part", self._held(function) if at is None else at, FUNCTION_CODE), code)

    def sized(self, step: int, count: int) -> None:
        """Guard that a step loads a dict with this number of items."""
        self._step("size", step, count)

    def table(self, table: dict[str, Any]) -> GlobalsTable:
        """The guarded names of the dict of a module or class."""
        if id(table) not in self._tables:
            self._tables[id(table)] = GlobalsTable(table, self._word(table))
        return self._tables[id(table)]

    def _named(self, table: dict[str, Any], name: str, part: Any) -> None:
        """A global: guarded as a constant, or loaded in each call where it is an array or number."""
        value = table[name]
        if type(part) is not Leaf and part[0] == "ufunc":
            self.table(table).names[name] = value
            self._ufunc(part, value)
            return
        is_changed = type(value) in (list, tuple, dict)  # maybe, in itself
        function = as_python(value)  # of one that numba compiled
        if type(part) is not Leaf and part[0] == "guarded" and part[2][0] in ("static", "function"):
            self._guard(self._held(function), part[1], function)
            part = part[2]
        is_static = type(part) is not Leaf and part[0] == "static" and not is_changed
        if is_static or (type(part) is not Leaf and type(function) is types.FunctionType):
            self.table(table).names[name] = value
            if part[0] == "function":
                self._function(part, function)
            return
        word = self._word(sys.intern(name))
        self._look(self._step("global", number=self.table(table).word, word=word), part, value)

    def _read(
        self, around: Mapping[str, types.CellType], table: dict[str, Any], chain: tuple[str, ...], part: Any
    ) -> None:
        """A chain of attributes of a module or class; its first item is a name in the function."""
        first, *rest = chain
        owner = around[first].cell_contents if first in around else table[first]
        for name in rest[:-1]:
            owner = self._attribute(owner, name, None)
        self._attribute(owner, rest[-1], part)

    def _attribute(self, owner: Any, name: str, part: Any) -> Any:
        """An attribute of a fixed module or class; without a structure, its value is a constant as well."""
        value = getattr(owner, name)
        if isinstance(owner, types.ModuleType) and name in vars(owner):
            self._named(vars(owner), name, ("static",) if part is None else part)
            return value
        if not isinstance(owner, type) or (part is not None and part[0] != "static"):
            raise UnreachableError(f"{name!r}, an attribute of what is neither a module nor a class")
        self.constant(self._step("attribute", self._held(owner), word=self._word(sys.intern(name))), value)
        return value

    def _step(self, kind: str, of: int = 0, number: int = 0, word: int = 0) -> int:
        self.steps.append(AccessStep(kind, of, number, word))
        return len(self.steps) - 1

    def _held(self, value: Any) -> int:
        return self._step("held", word=self._word(value))

    def _word(self, value: Any) -> int:
        self.context.append(value)
        return len(self.context) - 1

    def _function(self, structure: Any, function: Any) -> None:
        """Walk the globals and free variables of a fixed function."""
        if type(function) is not types.FunctionType:
            raise UnreachableError(f"{type(function).__name__}, which is called as a function")
        if id(function) not in self._seen or any(leaves_of(structure)):
            self._seen[id(function)] = function
            self.captured(structure, function)

    def _ufunc(self, structure: Any, value: Any) -> None:
        """The function under a fixed universal function."""
        source = ufunc_source(value)
        assert source is not None, "flattened as one"
        self._look(self._held(source.function), structure[2], source.function)

    def _look(self, step: int, structure: Any, value: Any) -> None:
        if type(structure) is Leaf:
            if structure == FOREIGN:
                raise UnreachableError("an array of another library")
            self.leaves.append(step)
            return
        kind = structure[0]
        if kind == "guarded":
            self._look(step, structure[2], value)
            self._guard(step, structure[1], value)
            return
        if kind == "ufunc":
            self._step("same", step, word=self._word(value))
            self._ufunc(structure, value)
            return
        inner = getattr(type(value), "__jitkernels_traced__", None)
        if kind == "function" and self._is_alike(structure, value):
            self._step("type", step, word=self._word(types.FunctionType))
            self.captured(structure, value, step)
        elif inner is not None or kind == "function":
            self._step("same", step, word=self._word(value))
            called = as_python(value if inner is None else inner(value))
            if kind == "function":
                self._function(structure, called)
            else:
                self._look(self._held(called), structure, called)
        elif kind == "static":
            self.constant(step, value)
        elif kind in (tuple, list, "named"):
            parts = structure[2] if kind == "named" else structure[1]
            self._typed(step, type(value), len(parts))
            if kind == "named" and hasattr(value, "__dict__"):
                self.sized(self._step("attribute", step, word=self._word("__dict__")), 0)
            for i, (part, one) in enumerate(zip(parts, value, strict=True)):
                inner = self._step("element" if kind is list else "item", step, i)
                self._look(inner, part, one)
        elif kind is dict:
            self._typed(step, dict, len(structure[1]))
            for key, part in zip(structure[1], structure[2], strict=True):
                self._look(self._step("value", step, word=self._word(_own(value, key))), part, value[key])
        elif kind == "structured":
            self._structured(step, value)
        elif kind == "drawn":
            self._typed_method(step, structure, value)
        elif kind in ("generator", "same generator"):
            self._generator(step, structure, value)
        elif kind in PARTS:
            self._parts(step, structure, value)
        else:
            self._object(step, structure, value)

    def _guard(self, step: int, guards: tuple[tuple[str, Any], ...], value: Any) -> None:
        """Attributes that are constants of the code, or that the object does not have; how many its dict has."""
        for name, part in guards:
            word = self._word(sys.intern(name))
            if type(part) is int:
                self._step("size", self._step("attribute", step, word=word), part)
            elif part is not None:
                inner = self._step("attribute", step, word=word)
                if isinstance(part[2], Constant):
                    self.constant(inner, part[2].value)
                else:
                    self._step("same", inner, word=self._word(part[2].value))
            elif OPTIONAL_ATTRIBUTE:
                self._step("absent", step, word=word)
            else:
                raise UnreachableError(f"{name!r}, an attribute that a {type(value).__name__} does not have")

    def _is_alike(self, structure: Any, value: Any) -> bool:
        """Whether another function with the same code is accepted, as each call may pass a new closure."""
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

    def constant(self, step: int, value: Any) -> None:
        """Guard that a step loads an equal constant. Raises UnreachableError."""
        if type(value) in (list, tuple):
            self._typed(step, type(value), len(value))
            for i, one in enumerate(value):
                self.constant(self._step("element" if type(value) is list else "item", step, i), one)
        elif type(value) is dict:
            self._typed(step, dict, len(value))
            for key, one in value.items():
                self.constant(self._step("value", step, word=self._word(_own(value, key))), one)
        elif type(value) in EQUAL or (type(value) is float and value and value == value):
            self._step("equal", step, word=self._word(value))
        elif isinstance(value, SAME) or type(value) is np.ndarray or is_library_function(value) or is_native(value):
            self._step("same", step, word=self._word(value))
        else:
            raise UnreachableError(f"a constant of type {type(value).__name__}, which may change")

    def _parts(self, step: int, structure: Any, value: Any) -> None:
        """A composite object of a builtin type."""
        names, offsets = PARTS[structure[0]]
        values = [getattr(value, name) for name in names]
        if not has_parts(value, offsets, values):
            raise UnreachableError(f"a {type(value).__name__} whose parts are not where compiled code looks")
        self._step("type", step, word=self._word(type(value)))
        for offset, part, attribute in zip(offsets, structure[1:], values, strict=True):
            self._look(self._step("part", step, offset), part, attribute)

    def _structured(self, step: int, value: Any) -> None:
        """A structured array or record: its memory and dtype object; each field is a leaf."""
        is_record = type(value) is np.void
        at = Offset.RECORD_DTYPE if is_record else Offset.ARRAY_DTYPE
        is_known = has_parts(value, (at,), (value.dtype,)) and (not is_record or field_views.has_known_layout(value))
        if not is_known or value.ndim > 1:
            raise UnreachableError("a structured array of several dimensions, or of an unknown layout")
        self._step("type", step, word=self._word(type(value)))
        self._step("equal", self._step("part", step, at), word=self._word(value.dtype))
        offsets = [value.dtype.fields[name][1] for name in value.dtype.names]
        self.leaves += [FieldStep(step, offset, value.dtype.itemsize, is_record) for offset in offsets]

    def _typed_method(self, step: int, structure: Any, value: Any) -> None:
        """A bound method of a random generator."""
        _, offsets = PARTS["method"]
        method = generator_states.as_method(value)
        if method is not value:  # a function of the module, of the global generator
            self._step("same", step, word=self._word(value))
            self._look(self._held(method.__self__), structure[2], method.__self__)
            return
        if not has_parts(value, offsets, (value.__func__, value.__self__)):
            raise UnreachableError("a method whose parts are not where compiled code looks")
        self._step("type", step, word=self._word(types.MethodType))
        self._step("same", self._step("part", step, offsets[0]), word=self._word(value.__func__))
        self._look(self._step("part", step, offsets[1]), structure[2], value.__self__)

    def _generator(self, step: int, structure: Any, value: Any) -> None:
        """A random generator: the lock and the arrays of its state, by a table of generators."""
        if structure[0] == "same generator":
            self._step("alike", step, self._generators[structure[1]])
            return
        self._generators.append(step)
        table = generator_states.table_of(value)
        word = self._word(table.entries)
        self._word(table.admit)
        entry = self._step("entry", step, word=word)
        self.locks += self._step("item", entry, 0), self._step("item", entry, 1)
        for number, part in enumerate(structure[3], start=generator_states.FIRST_ARRAY):
            self._look(self._step("item", entry, number), part, None)

    def _object(self, step: int, structure: Any, value: Any) -> None:
        _, kind, names, parts, methods = structure
        if type(value) is not kind or not all(is_own(value, name) for name in names):
            raise UnreachableError(f"an object of type {type(value).__name__}, whose attributes are not its own alone")
        self._step("type", step, word=self._word(kind))
        if any(what == "hidden" for _, (what, _) in methods) and hasattr(value, "__dict__"):
            self.sized(self._step("attribute", step, word=self._word("__dict__")), len(vars(value)))
        for name, part in zip(names, parts, strict=True):
            inner = self._step("attribute", step, word=self._word(sys.intern(name)))
            self._look(inner, part, getattr(value, name))
        for name, (what, part) in methods:
            word = self._word(sys.intern(name))
            if what == "hidden":  # by an attribute of the object itself, if it gets one
                continue
            if what == "value":
                self.constant(self._step("attribute", step, word=word), part.value)
            elif HAVE_METHODS:
                self._look(self._step("method", step, word=word), part, getattr(value, name).__func__)
            else:
                raise UnreachableError(f"a method of {kind.__name__}, which this Python does not let others look up")


def _own(value: dict[Any, Any], key: Any) -> Any:
    """The key object in a dict that equals `key`."""
    if type(key) not in (str, int, bool, tuple, type(None)):
        raise UnreachableError(f"a dict with a key of type {type(key).__name__}")
    return next(own for own in value if own == key)
