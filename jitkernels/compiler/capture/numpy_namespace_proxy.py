"""NumPy namespace proxy: replaces NumPy in traced functions, so that calls without array arguments are traced.

NumPy's dispatch protocols never reach the trace for functions such as `numpy.zeros`, or for lists of arrays. So the
globals of a traced function refer to this module's proxies instead of NumPy.
"""

import builtins
import cmath
import functools
import math
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.bytecode_calls import is_called
from jitkernels.compiler.capture.free_variables import Same
from jitkernels.compiler.capture.impure import ImpureModule, is_impure_module
from jitkernels.compiler.capture.native.native_functions import is_native
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES, TABLE
from jitkernels.compiler.capture.static_arrays import frozen
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.core import hooks

CREATION: dict[Any, Any] = {}
"""NumPy's array creation functions, and their implementations in a trace."""


def creates(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation of array creation functions; it takes the tracer first."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        CREATION.update(dict.fromkeys(functions, implementation))
        return implementation

    return enter


class FunctionProxy:
    """Proxy of a NumPy function, which equals the function; `shared_proxy` keeps the identity as well."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.__name__ = getattr(function, "__name__", "function")

    def __eq__(self, other: object) -> bool:
        return bool(self.function == original(other))

    def __hash__(self) -> int:
        return hash(self.function)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self.function(*arguments, **keywords)
        function, arguments, keywords = SERVICES["lists"](self.function, arguments, keywords)
        creation = CREATION.get(function)
        if creation is not None:
            return creation(tracer, *arguments, **keywords)
        if has_traced((arguments, keywords)):
            return SERVICES["function"](tracer, function, arguments, keywords)
        return SERVICES["constants"](tracer, function(*arguments, **keywords))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


@functools.cache
def shared_proxy(function: Any) -> FunctionProxy:
    """The one proxy of a function: code may compare functions by identity."""
    return FunctionProxy(function)


def original(value: Any) -> Any:
    """What a proxy of a function or module stands for; other values are returned unchanged."""
    return value.function if type(value) is FunctionProxy else value._module if type(value) is ModuleProxy else value


def has_traced(tree: Any) -> bool:
    """Whether a value is, or contains, an array or number of a trace."""
    return any(type(leaf) in (Traced, SymInt) for leaf in pytree.leaves(tree))


class ModuleProxy:
    """Proxy of NumPy, or of one of its submodules."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if name in ("seterr", "seterrcall", "setbufsize", "set_printoptions"):
            raise UnsupportedError(f"the function calls numpy.{name}")
        if name == "errstate":
            return Quiet
        value = getattr(self._module, name)
        if isinstance(value, type) and value in CALLED:
            frame = sys._getframe(1)
            return CALLED[value] if is_called(frame.f_code, frame.f_lasti) else value
        if name in ("mgrid", "ogrid", "r_", "c_"):
            return IndexedCreation(name, value)
        if isinstance(value, types.FunctionType | types.BuiltinFunctionType | type(np.sum)):
            if name.startswith(("load", "from", "gen", "save", "show", "test", "info")) or "file" in name:
                raise UnsupportedError(f"numpy.{name}")
            return shared_proxy(value)
        return stand_in(value)


@functools.cache
def _shared_module(module: types.ModuleType) -> ModuleProxy:
    return ModuleProxy(module)


def _array_namespace(array: Traced, /, *, api_version: str | None = None) -> Any:
    """What `ndarray.__array_namespace__` returns, in a trace. Raises ValueError as it does."""
    plain: Any = np.empty(0)
    plain.__array_namespace__(api_version=api_version)
    return _shared_module(np)


METHODS["__array_namespace__"] = _array_namespace


class ModuleOverlay:
    """Proxy of another module, some of whose names are arguments of the trace."""

    def __init__(self, module: types.ModuleType, names: Mapping[str, Any]) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        return self._names[name] if name in self._names else getattr(self._module, name)


def seen(owner: Any, names: tuple[str, ...], value: Any) -> Any:
    """The proxy of a module in which a dotted name has a value; other objects are returned unchanged."""
    known: Mapping[str, Any] = {}
    if isinstance(owner, ModuleOverlay):
        owner, known = owner._module, owner._names
    if not isinstance(owner, types.ModuleType):
        return owner
    first, *rest = names
    if rest:
        value = seen(known.get(first, getattr(owner, first)), tuple(rest), value)
    return ModuleOverlay(owner, {**known, first: value})


class IndexedCreation:
    """Proxy of objects that create arrays by indexing, such as ``numpy.mgrid``."""

    def __init__(self, name: str, value: Any) -> None:
        self._name, self._value = name, value

    def __getitem__(self, key: Any) -> Any:
        tracer = current()
        if tracer is None:
            return self._value[key]
        parts = key if isinstance(key, tuple) else (key,)
        if self._name in ("mgrid", "ogrid"):
            if any(type(part) is slice and has_traced((part.start, part.stop)) for part in parts):
                return SERVICES["grid"](tracer, key, is_open=self._name == "ogrid")
        elif any(type(part) is Traced for part in parts):
            return SERVICES[self._name](tracer, parts)
        return SERVICES["constants"](tracer, self._value[key])


class Quiet(np.errstate):
    """``numpy.errstate`` in a trace: supports ignoring errors only; the fallback handles all other modes."""

    def __init__(self, **modes: Any) -> None:
        tracer = current()
        if any(mode != "ignore" for mode in modes.values()):
            raise UnsupportedError("the function requests reports of floating-point errors")
        if tracer is not None:
            tracer.is_quiet = True
        super().__init__(**modes)


def stand_in(value: Any) -> Any:
    """The proxy of a constant of a traced function."""
    if isinstance(value, Same):
        value = value.value
    if isinstance(value, types.ModuleType):
        if value.__name__ == "numpy.random":
            return hooks.trace_random_module(value)
        if value.__name__.partition(".")[0] == "numpy":
            return _shared_module(value)
        if is_impure_module(value):
            return ImpureModule(value)
        return MathProxy(value) if value in (math, cmath) else BuiltinsProxy() if value is builtins else value
    if value is type:
        return BUILTINS["type"]
    if is_native(value):
        return SERVICES["native"](value)
    if str(getattr(value, "__module__", "")).startswith("numpy.random"):
        return hooks.trace_random_module(value) or value
    if isinstance(value, types.BuiltinFunctionType) and hasattr(value.__self__, "schema"):
        return hooks.trace_everyday_function(value)
    try:
        is_known = value in CREATION or value in TABLE
    except TypeError:
        return frozen(value)
    return shared_proxy(value) if is_known and not isinstance(value, np.ufunc | type) else value


class MathProxy:
    """Proxy of the modules `math` and `cmath`, whose functions require concrete numbers."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return SERVICES["math"](getattr(self._module, name))


class BuiltinsProxy:
    """Proxy of the module `builtins`."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(builtins, name)
        frame = sys._getframe(1)
        if value in CALLED and is_called(frame.f_code, frame.f_lasti):
            return CALLED[value]
        return BUILTINS.get(name, value)


def class_of(value: Any) -> type:
    """The type of a value that the function sees: that of what a proxy stands for."""
    if type(value) in (Traced, SymInt):
        return value.__class__  # type: ignore[no-any-return]
    return value.stands_for if hasattr(type(value), "stands_for") else type(value)


def _isinstance(value: Any, kind: Any, /) -> bool:
    """``isinstance`` of proxies whose own `__class__` is seen by the compiler's code."""
    return issubclass(class_of(value), kind) if hasattr(type(value), "stands_for") else isinstance(value, kind)


class TypeProxy:
    """Proxy of `type`, which hides the proxy types of traced values."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        if len(arguments) == 1 and not keywords:
            return class_of(arguments[0])
        return type(*arguments, **keywords)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(self, kind: Any) -> bool:
        return issubclass(kind, type)

    def __getattr__(self, name: str) -> Any:
        return getattr(type, name)


BUILTINS = {"type": TypeProxy()}
"""Replacements of builtins in traced functions."""


def _print(*values: Any, **options: Any) -> None:
    """``print`` in a trace, which has reached it: the flag around it, if any, is true."""
    raise UnsupportedError("the function calls print")


CALLED: dict[Any, Callable[..., Any]] = {print: _print, isinstance: _isinstance}
"""Replacements at call sites only, see `jitkernels.compiler.capture.python_numbers.scalar_functions`."""
