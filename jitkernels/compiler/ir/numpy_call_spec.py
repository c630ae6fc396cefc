"""Functions that NumPy computes, as nodes call them: which of their arguments are the node's inputs.

Compiled code refers to such a function by a name, which says all of it, so that code kept on disk means the same.
"""

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.graph.construct import UnknownError


class Hole:
    """Where an array goes."""

    def __init__(self, number: int) -> None:
        self.number = number


class Called:
    """A call of a function with arrays put where they belong; what it gives is as it was when it was traced."""

    def __init__(self, function: Any, arguments: Any, keywords: Any, kinds: list[Any]) -> None:
        self.function, self.arguments, self.keywords, self.kinds = function, arguments, keywords, kinds
        self.expected: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arrays: Any) -> Any:
        given = [
            array if kind == "array" else array[()] if kind == "scalar" else kind(array)
            for array, kind in zip(map(np.asarray, arrays), self.kinds, strict=True)
        ]
        found = self.function(*_filled(self.arguments, given), **_filled(self.keywords, given))
        if self.expected and described(found) != self.expected:
            raise UnknownError(f"numpy.{self.__name__} gave something else than when it was traced")
        return found

    def parameters(self) -> dict[str, Any]:
        """The arguments by their names, `Hole`s where inputs go."""
        return dict(inspect.signature(self.function).bind(*self.arguments, **self.keywords).arguments)


def _has_holes(value: Any) -> bool:
    if isinstance(value, tuple | list | dict):
        return any(map(_has_holes, value.values() if isinstance(value, dict) else value))
    return type(value) is Hole


def _filled(value: Any, arrays: Sequence[Any]) -> Any:
    if type(value) is Hole:
        return arrays[value.number]
    if isinstance(value, tuple | list):
        return type(value)(_filled(one, arrays) for one in value)
    if isinstance(value, dict):
        return {name: _filled(one, arrays) for name, one in value.items()}
    return value


def described(found: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Dtypes and shapes of what a call gives."""
    listed = found if isinstance(found, tuple) else (found,)
    return tuple((one.dtype.name, one.shape) for one in listed)


PLAIN = (int, float, bool, str, type(None))
PACKAGE = __name__.partition(".")[0]
_named: dict[str, Callable[..., Any]] = {}


def name_of(function: Any) -> str | None:
    """The name that code has for a function, which takes arrays and numbers by position; None where it has none."""
    try:
        text = _told(function)
    except UnknownError:
        return None
    name = f"jk_called_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    if name not in _named:
        _named[name] = _plain(function) if type(function) is Called else _bare(function)
    return name


def named(name: str) -> Callable[..., Any]:
    """The function that has a name in code."""
    return _named[name]


def _path(function: Any) -> str:
    """Where a function is found. Raises UnknownError if that is nowhere."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if isinstance(function, np.ufunc):
        module, path = "numpy", function.__name__
    found: Any = sys.modules.get(module or "")
    for one in (path or "?").split("."):
        found = getattr(found, one, None)
    if found is not function:
        raise UnknownError("a function that is found nowhere")
    return f"{module}:{path}"


def _told(value: Any) -> str:
    """All that a call, or a part of one, is. Raises UnknownError where that cannot be told."""
    if type(value) is Hole:
        return f"#{value.number}"
    if type(value) in PLAIN or isinstance(value, np.dtype):
        return repr(value)
    if type(value) in (tuple, list):
        return f"{type(value).__name__}({', '.join(map(_told, value))})"
    if type(value) is dict:
        return f"dict({', '.join(f'{key}={_told(one)}' for key, one in value.items())})"
    if type(value) is functools.partial:
        return f"partial({_told(value.func)}, {_told(value.args)}, {_told(value.keywords)})"
    if type(value).__module__.startswith(f"{PACKAGE}.") and hasattr(value, "__dict__"):  # such as `Called`
        return f"{type(value).__qualname__}({_told({**vars(value), 'expected': None})})"
    return _path(value)


METHODS: dict[Any, Any] = {
    np.argsort: np.ndarray.argsort,
    np.argpartition: np.ndarray.argpartition,
    np.searchsorted: np.ndarray.searchsorted,
}
"""What these functions come to for arrays."""
SILENT = frozenset({np.sort, np.partition, np.lexsort, np.digitize, *METHODS})
"""Functions that NumPy never warns of."""


def may_warn(function: Any) -> bool:
    """Whether floating-point errors of a function are warned of."""
    function = function.function if type(function) is Called else getattr(function, "func", function)
    return function not in SILENT


def _bare(function: Any) -> Any:
    """The same for arrays, without a look for other kinds of arrays."""
    if type(function) is functools.partial:
        return functools.partial(_bare(function.func), *function.args, **function.keywords)
    return METHODS.get(function) or getattr(function, "_implementation", None) or function


def _plain(call: Called) -> Callable[..., Any]:
    """A function of the arrays alone."""
    function = call.function if call.kinds[:1] != ["array"] else _bare(call.function)
    count = len(call.kinds)
    numbers = [one.number if type(one) is Hole else -1 for one in call.arguments]
    if numbers == [*range(count)] and not call.keywords:
        return function  # type: ignore[no-any-return]
    rest = call.arguments[count:]
    if numbers[:count] == [*range(count)] and not _has_holes((rest, call.keywords)):
        if not rest:
            return functools.partial(function, **call.keywords)
        return lambda *arrays: function(*arrays, *rest, **call.keywords)

    def called(*arrays: Any) -> Any:
        return function(*_filled(call.arguments, arrays), **_filled(call.keywords, arrays))

    return called
