"""Guards of attributes that code looks for by name, or expects to miss: ``getattr(c, "scale", 1.0)``, ``hasattr``.

The copies of a trace have the attributes that the first call finds. Without a guard, an attribute that an object, its
class, a function or a module gets later would never be seen.
"""

import enum
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import (
    Constant,
    Same,
    attributes_in,
    handles_exceptions,
    is_library,
    is_unchanging,
    reads_by_name,
    strings_in,
)
from jitkernels.compiler.capture.pytree.sentinels import is_sentinel
from jitkernels.compiler.capture.pytree.static_key import static
from jitkernels.compiler.ir.builder import UnsupportedError

CONSTANT = bool, int, float, complex, str, tuple, np.dtype, type(None)
"""Types of attributes of classes and modules whose values become constants of the code."""
HAVE_ATTRIBUTES = types.FunctionType, functools.partial
"""Types of callables that are copied without their attributes."""


class AttributeNames:
    """The attribute names in the code of one call, collected while its functions and objects are flattened.

    `read`: those of attribute reads. Names are also strings once the code calls ``getattr`` or the like.
    """

    def __init__(self) -> None:
        self.read: set[str] = set()
        self._strings: set[str] = set()
        self._handles = self._is_by_name = False
        self._first_uses: dict[str, int] = {}

    def add_code(self, code: types.CodeType) -> None:
        """Add the names in the code of a function that the call may run."""
        self.read |= attributes_in(code)
        self._strings |= strings_in(code)
        self._handles = self._handles or handles_exceptions(code)
        self._is_by_name = self._is_by_name or reads_by_name(code)

    def add_string(self, text: str) -> None:
        """Add a string that the code may read."""
        self._strings.add(text)

    def read_by_name(self) -> None:
        """Note that the code has a function that reads attributes by name."""
        self._is_by_name = True

    @property
    def by_name(self) -> set[str]:
        """The strings that may be names of attributes."""
        return self._strings if self._is_by_name else set()

    @property
    def all(self) -> set[str]:
        """All names that code may read."""
        return self.read | self.by_name

    @property
    def missed(self) -> set[str]:
        """The names whose absence code can see: those by name, and all where it handles exceptions."""
        return self.all if self._handles else self.by_name

    @property
    def of_dict(self) -> set[str]:
        """``__dict__``, if the code reads it."""
        return self.read & {"__dict__"}

    def use(self, names: str) -> set[str]:
        """The names ``all``, ``missed`` or ``of_dict`` so far, for one value: see `is_late`."""
        found: set[str] = getattr(self, names)
        self._first_uses.setdefault(names, len(found))
        return found

    def is_late(self) -> bool:
        """Whether there are more names than at the first use. It starts over: values must be flattened again."""
        late = any(count < len(getattr(self, names)) for names, count in self._first_uses.items())
        self._first_uses.clear()
        return late


def guarded(value: Any, structure: Any, names: AttributeNames) -> Any:
    """The structure with guards of its value's attributes: constants, names that it does not have, and their number.

    Raises UnsupportedError for an attribute that other code may change, or that a copy would not have.
    """
    guards = tuple(_guards_of(value, structure, names.use("missed"), names.by_name))
    is_fixed = isinstance(value, types.ModuleType | type | enum.Enum)
    if names.use("of_dict") and hasattr(value, "__dict__") and not is_fixed and not _is_unguarded(value):
        has_methods = structure[0] == "object" and any(what == "function" for _, (what, _) in structure[4])
        if has_methods or (structure[0] != "object" and vars(value)):
            raise UnsupportedError(f"the __dict__ of a {type(value).__name__} with methods or attributes")
        guards = (*guards, ("__dict__", len(vars(value))))
    return ("guarded", guards, structure) if guards else structure


def _guards_of(value: Any, structure: Any, missed: set[str], by_name: set[str]) -> Iterator[tuple[str, Any]]:
    if not missed or isinstance(value, enum.Enum):
        return
    kind = type(value)
    if isinstance(value, types.ModuleType | type):
        if not is_unchanging(value) and not (isinstance(value, type) and issubclass(value, enum.Enum)):
            for name in sorted(missed):
                if not hasattr(value, name):
                    yield name, None
                elif name in by_name:
                    yield name, _constant(value.__name__, name, getattr(value, name))
    elif kind in HAVE_ATTRIBUTES and not _is_unguarded(value):
        for name in sorted(missed):
            if name in vars(value):
                raise UnsupportedError(f"the attribute {name!r} of a function")
            if not hasattr(kind, name):
                yield name, None
    elif structure[0] in ("object", "named") or is_sentinel(value):
        if hasattr(kind, "__getattr__"):  # the trace runs it
            return
        own = structure[2] if structure[0] == "object" else getattr(kind, "_fields", dir(value))
        for name in sorted(missed.difference(own)):
            if name in getattr(value, "__dict__", ()):
                raise UnsupportedError(f"the attribute {name!r} of a named tuple")
            found = class_attribute(kind, name)
            if not found:
                yield name, None
            elif structure[0] == "named" and isinstance(found[0], CONSTANT):
                yield name, _constant(kind.__name__, name, found[0])


def _is_unguarded(value: Any) -> bool:
    """Whether a value is a function of a library, which nothing changes."""
    return type(value) is types.FunctionType and is_library(value)


def class_attribute(kind: type, name: str) -> list[Any]:
    """The attribute of a class by its own name, in a list; an empty one without it."""
    return [vars(base)[name] for base in kind.__mro__ if name in vars(base)][:1]


def _constant(owner: str, name: str, value: Any) -> Any:
    if isinstance(value, CONSTANT):
        return "static", type(value), Constant(static(value), value)
    if isinstance(value, types.ModuleType | enum.Enum) or (callable(value) and not isinstance(value, types.MethodType)):
        return "static", type(value), Same(value)
    raise UnsupportedError(f"{owner}.{name}, which is read by name")
