"""From the structure of a call's arguments to the steps by which compiled code reaches arrays and numbers in them."""

import ctypes
import functools
import sys
import sysconfig
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.arguments import counted
from jitkernels.frontends.captured import Same, is_library, names_of
from jitkernels.graph.emit.objects import Step
from jitkernels.native.layout import Offset

EQUAL: tuple[type, ...] = (int, str, bytes)
"""Constants that others may be equal to."""
SAME: tuple[type, ...] = (
    type(None), bool, float, type, types.BuiltinFunctionType, np.ufunc, np.dtype, type(Ellipsis), types.ModuleType,
    types.MethodDescriptorType, types.WrapperDescriptorType, type(np.sum),
)  # fmt: skip
"""Constants that cannot change."""


class UnreachableError(Exception):
    """What compiled code does not look into."""


class Reaching:
    """Collects steps. `leaves`: the steps that give arrays and numbers, in order; `context`: what is compared with."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.leaves: list[int] = []
        self.context: list[Any] = []
        self._seen: dict[int, Any] = {}

    def argument(self, number: int, structure: Any, value: Any) -> None:
        """An argument of the call. Raises UnreachableError."""
        self._look(self._step("argument", number=number), structure, value)

    def default(self, structure: Any, value: Any) -> None:
        """A default, which is part of the code. Raises UnreachableError."""
        if type(structure) is str:
            self.leaves.append(~self._word(value))
        elif structure[0] != "static" or not isinstance(value, (*EQUAL, *SAME)):
            raise UnreachableError

    def captured(self, structure: Any, function: types.FunctionType) -> None:
        """What a function refers to by name, which is looked up again. Raises UnreachableError."""
        if structure[0] == "static":
            return  # of NumPy, Python's library or this package, where no name is bound anew
        _, _, _, cells, _, keywords, names, read = structure
        if keywords or read:
            raise UnreachableError
        for cell, part in zip(function.__closure__ or (), cells, strict=True):
            self._look(self._step("cell", word=self._word(cell)), part, cell.cell_contents)
        table = function.__globals__
        # Builtins, until there are globals of these names.
        missing = [name for name in names_of(function.__code__).names if name not in table]
        where = self._word(table) if names or missing else 0
        fixed = [one for one in names if type(one[1]) is not str and one[1][0] == "static"]
        if (fixed or missing) and tell_changes():
            # Instead of the version there is an address at first, which no version comes to.
            self._step("changed", number=where, word=self._word(table))
            self._globals(fixed, table, where, missing)
            self._step("looked")
            names, missing = [one for one in names if one not in fixed], []
        self._globals(names, table, where, missing)

    def _globals(
        self, names: Sequence[tuple[str, Any]], table: dict[str, Any], where: int, missing: Sequence[str]
    ) -> None:
        for name in missing:
            self._step("absent", number=where, word=self._word(sys.intern(name)))
        for name, part in names:
            step = self._step("global", number=where, word=self._word(sys.intern(name)))
            self._look(step, part, table[name])

    def _step(self, kind: str, of: int = 0, number: int = 0, word: int = 0) -> int:
        self.steps.append(Step(kind, of, number, word))
        return len(self.steps) - 1

    def _word(self, value: Any) -> int:
        self.context.append(value)
        return len(self.context) - 1

    def _look(self, step: int, structure: Any, value: Any) -> None:
        if type(structure) is str:
            if structure == "D":
                raise UnreachableError
            self.leaves.append(step)
            return
        kind = structure[0]
        inner = getattr(type(value), "__jitkernels_traced__", None)
        if inner is not None or kind == "function":
            self._step("same", step, word=self._word(value))
            function = value if inner is None else inner(value)
            if kind != "function" or type(function) is not types.FunctionType or structure[4]:
                raise UnreachableError
            if id(function) not in self._seen:
                self._seen[id(function)] = function
                self.captured(structure, function)
            elif counted(structure):
                raise UnreachableError
        elif kind == "static":
            self._static(step, structure[2], value)
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
        elif kind == "object" and not structure[4]:
            self._object(step, structure, value)
        else:
            raise UnreachableError

    def _typed(self, step: int, kind: type, count: int) -> None:
        self._step("type", step, word=self._word(kind))
        self._step("size", step, count)

    def _static(self, step: int, constant: Any, value: Any) -> None:
        if isinstance(constant, Same):
            constant = constant.value
        if type(value) in EQUAL:
            self._step("equal", step, word=self._word(value))
        elif isinstance(value, SAME) or (type(value) is types.FunctionType and is_library(value)):
            self._step("same", step, word=self._word(value))
        else:
            raise UnreachableError

    def _object(self, step: int, structure: Any, value: Any) -> None:
        _, kind, names, parts, _ = structure
        own = getattr(value, "__dict__", None)
        if own is None or type(value) is not kind or any(name not in own for name in names):
            raise UnreachableError
        if any(hasattr(getattr(kind, name, None), "__set__") for name in names):
            raise UnreachableError
        self._step("type", step, word=self._word(kind))
        for name, part in zip(names, parts, strict=True):
            inner = self._step("attribute", step, word=self._word(name))
            self._look(inner, part, own[name])


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
    """The very key that a dict has; a name, which others are the same as."""
    if type(key) is not str:
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
