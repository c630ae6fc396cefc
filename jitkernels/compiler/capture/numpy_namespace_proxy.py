"""What traced functions see in place of the module NumPy: calls that have no array to ask are traced too.

Functions such as `numpy.zeros` make arrays of nothing, and lists of arrays are no arrays yet: NumPy's dispatch never
reaches the trace for these. So the globals of a traced function have this module's object where they have NumPy.
"""

import importlib
import math
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitkernels.frontends.callees import is_called
from jitkernels.frontends.captured import Same
from jitkernels.frontends.frozen import frozen
from jitkernels.frontends.tables import SERVICES, TABLE
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import current
from jitkernels.frontends.whole import Whole
from jitkernels.graph.construct import UnknownError

CREATION: dict[Any, Any] = {}
"""NumPy's functions that make arrays, and what each does in a trace."""


def creates(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function stand for functions that make arrays; it takes the trace first."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        CREATION.update(dict.fromkeys(functions, implementation))
        return implementation

    return enter


class Function:
    """One of NumPy's functions, as a traced function sees it."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self.function(*arguments, **keywords)
        function, arguments, keywords = SERVICES["lists"](self.function, arguments, keywords)
        made = CREATION.get(function)
        if made is not None:
            return made(tracer, *arguments, **keywords)
        if any(map(_is_traced, arguments)) or any(map(_is_traced, keywords.values())):
            return SERVICES["function"](tracer, function, arguments, keywords)
        return SERVICES["constants"](tracer, function(*arguments, **keywords))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def _is_traced(value: Any) -> bool:
    if type(value) in (Traced, Whole):
        return True
    return isinstance(value, list | tuple) and any(map(_is_traced, value))


class Module:
    """NumPy, or a part of it, as a traced function sees it."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in ("seterr", "seterrcall", "setbufsize", "set_printoptions"):
            raise UnknownError(f"the function calls numpy.{name}")
        if name == "errstate":
            return Quiet
        value = getattr(self._module, name)
        if isinstance(value, type) and value in CALLED:
            frame = sys._getframe(1)
            return CALLED[value] if is_called(frame.f_code, frame.f_lasti) else value
        if name in ("mgrid", "ogrid", "r_", "c_"):
            return Indexed(name, value)
        if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type(np.sum)):
            if name.startswith(("load", "from", "gen", "save", "show", "test", "info")) or "file" in name:
                raise UnknownError(f"numpy.{name}")
            return Function(value)
        return stand_in(value)


class Other:
    """A module that is not NumPy's, some of whose names are arguments of the trace."""

    def __init__(self, module: types.ModuleType, names: Mapping[str, Any]) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        return self._names[name] if name in self._names else getattr(self._module, name)


def seen(owner: Any, names: tuple[str, ...], value: Any) -> Any:
    """What stands for a module that has a value under some names, one of the other; others are as they are."""
    known: Mapping[str, Any] = {}
    if isinstance(owner, Other):
        owner, known = owner._module, owner._names
    if not isinstance(owner, types.ModuleType):
        return owner
    first, *rest = names
    if rest:
        value = seen(known.get(first, getattr(owner, first)), tuple(rest), value)
    return Other(owner, {**known, first: value})


class Indexed:
    """What NumPy makes arrays of by an index, such as ``numpy.mgrid``."""

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __getitem__(self, key: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self._value[key]
        parts = key if isinstance(key, tuple) else (key,)
        if any(type(one) is Traced for one in parts):
            return SERVICES[self._name](tracer, parts)
        return SERVICES["constants"](tracer, self._value[key])


class Quiet(np.errstate):
    """``numpy.errstate`` in a trace: errors may be ignored, and only NumPy can tell which are not."""

    def __init__(self, **modes: Any) -> None:
        tracer = current()
        if any(mode != "ignore" for mode in modes.values()):
            raise UnknownError("the function asks for floating-point errors to be told")
        if tracer is not None:
            tracer.is_quiet = True
        super().__init__(**modes)


def stand_in(value: Any) -> Any:
    """What a traced function sees in place of a constant of its."""
    if isinstance(value, Same):
        value = value.value
    if isinstance(value, types.ModuleType):
        if value.__name__ == "numpy.random":
            raise UnknownError("the function uses numpy.random")
        if value.__name__.partition(".")[0] == "numpy":
            return Module(value)
        return Mathematics() if value is math else value
    if isinstance(value, types.BuiltinFunctionType) and hasattr(value.__self__, "row"):
        return importlib.import_module("jitkernels.named.calls").stand_in(value)
    try:
        is_known = value in CREATION or value in TABLE
    except TypeError:
        return frozen(value)
    return Function(value) if is_known and not isinstance(value, np.ufunc | type) else value


class Mathematics:
    """The module `math`, which would ask for plain numbers."""

    def __getattr__(self, name: str) -> Any:
        return SERVICES["math"](getattr(math, name))


class Kind:
    """The function `type`, which is not to tell what an array of the trace is in truth."""

    def __call__(self, *given: Any, **keywords: Any) -> Any:
        if len(given) == 1 and not keywords:
            return given[0].__class__ if type(given[0]) in (Traced, Whole) else type(given[0])
        return type(*given, **keywords)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, type)

    def __getattr__(self, name: str) -> Any:
        return getattr(type, name)


BUILTINS = {"type": Kind()}
"""What traced functions see in place of functions of Python."""
CALLED: dict[Any, Callable[..., Any]] = {}
"""What they see in place of others where they call these, see `jitkernels.frontends.numbers`."""
