"""Calls of NumPy functions from compiled code: which arguments are the node's inputs, and a stable name for each call.

The name identifies the function and all its constant arguments, so that code in the disk cache keeps its meaning.
"""

import functools
import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.core.canonical_text import canonical_text
from jitkernels.runtime import python_callback, vectorcall


class ArrayPlaceholder:
    """A placeholder for an array among the arguments; `number`: which input."""

    def __init__(self, number: int) -> None:
        self.number = number


class Called:
    """A call of a function with arrays in place of the holes; the results must have the traced dtypes and shapes."""

    def __init__(self, function: Any, arguments: Any, keywords: Any, kinds: list[Any]) -> None:
        self.function, self.arguments, self.keywords, self.kinds = function, arguments, keywords, kinds
        self.expected: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arrays: Any) -> Any:
        filled = [
            array if kind == "array" else array[()] if kind == "scalar" else kind(array)
            for array, kind in zip(map(np.asarray, arrays), self.kinds, strict=True)
        ]
        result = self.function(*_fill_holes(self.arguments, filled), **_fill_holes(self.keywords, filled))
        if self.expected and described(result) != self.expected:
            raise UnsupportedError(f"numpy.{self.__name__} returned other dtypes or shapes than during tracing")
        return result

    def parameters(self) -> dict[str, Any]:
        """The arguments by their names, with a `ArrayPlaceholder` for each input."""
        return dict(inspect.signature(self.function).bind(*self.arguments, **self.keywords).arguments)


def _fill_holes(tree: Any, arrays: Sequence[Any]) -> Any:
    return pytree.tree_map(lambda value: arrays[value.number] if type(value) is ArrayPlaceholder else value, tree)


def described(result: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Dtypes and shapes of the results of a call."""
    results = result if isinstance(result, tuple) else (result,)
    return tuple((array.dtype.name, array.shape) for array in results)


PACKAGE = __name__.partition(".")[0]
_functions_by_name: dict[str, Callable[..., Any]] = {}


def name_of(function: Any) -> str | None:
    """The name of a function in code, called with arrays and scalars by position; None where it has none."""
    try:
        text = _canonical_text(function)
    except UnsupportedError:
        return None
    name = f"jk_called_{hashlib.sha256(text.encode()).hexdigest()[:24]}"
    if name not in _functions_by_name:
        _functions_by_name[name] = _array_function(function) if type(function) is Called else _undispatched(function)
    return name


def named(name: str) -> Callable[..., Any]:
    """The function with a name in code."""
    return _functions_by_name[name]


UFUNC_MODULES = ("numpy", "scipy.special")
"""Where universal functions are found, which have no module of their own."""


def _path(function: Any) -> str:
    """The import path of a function. Raises UnsupportedError for one that has none."""
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if isinstance(function, np.ufunc):
        path = function.__name__
        module = next((name for name in UFUNC_MODULES if getattr(sys.modules.get(name), path, None) is function), "")
    resolved: Any = sys.modules.get(module or "")
    for attribute in (path or "?").split("."):
        resolved = getattr(resolved, attribute, None)
    if resolved is not function:
        raise UnsupportedError("a function without an import path")
    return f"{module}:{path}"


def _canonical_text(value: Any) -> str:
    """A canonical text of a call or a part of it. Raises UnsupportedError for a value without one."""
    return canonical_text(value, _text_of_object)


def _text_of_object(value: Any) -> str:
    if type(value) is ArrayPlaceholder:
        return f"#{value.number}"
    if type(value) is functools.partial:
        return f"partial{_canonical_text((value.func, value.args, value.keywords))}"
    if type(value).__module__.startswith(f"{PACKAGE}.") and hasattr(value, "__dict__"):  # such as `Called`
        fields = _canonical_text({**vars(value), "expected": None})
        return f"{type(value).__qualname__}({fields})"
    return _path(value)


METHODS: dict[Any, Any] = {
    np.argsort: np.ndarray.argsort,
    np.argpartition: np.ndarray.argpartition,
    np.searchsorted: np.ndarray.searchsorted,
}
"""Functions with the array methods that they call."""
SILENT = frozenset({np.sort, np.partition, np.lexsort, np.digitize, *METHODS})
"""Functions for which NumPy never warns."""


def may_warn(function: Any) -> bool:
    """Whether NumPy may warn of floating-point errors of a function."""
    function = function.function if type(function) is Called else getattr(function, "func", function)
    return function not in SILENT


def _undispatched(function: Any) -> Any:
    """The implementation for plain arrays, without NumPy's dispatch to other array types."""
    if type(function) is functools.partial:
        return functools.partial(_undispatched(function.func), *function.args, **function.keywords)
    return METHODS.get(function) or getattr(function, "_implementation", None) or function


def _array_function(call: Called) -> Callable[..., Any]:
    """A function of the arrays alone."""
    function = call.function if call.kinds[:1] != ["array"] else _undispatched(call.function)
    count = len(call.kinds)
    numbers = [argument.number if type(argument) is ArrayPlaceholder else -1 for argument in call.arguments]
    if numbers == [*range(count)] and not call.keywords:
        return function  # type: ignore[no-any-return]
    rest = call.arguments[count:]
    if numbers[:count] == [*range(count)] and not any(
        type(leaf) is ArrayPlaceholder for leaf in pytree.leaves((rest, call.keywords))
    ):
        if not rest:
            return functools.partial(function, **call.keywords)
        return lambda *arrays: function(*arrays, *rest, **call.keywords)

    def called(*arrays: Any) -> Any:
        return function(*_fill_holes(call.arguments, arrays), **_fill_holes(call.keywords, arrays))

    return called


def is_callable_from_code(node: Node) -> bool:
    """Whether compiled code can call the function of a call node."""
    return (
        node.operation == "call"
        and vectorcall.base() is not None
        and len(node.inputs) <= python_callback.MAX_CALLBACK_ARGUMENTS
        and name_of(node.options["function"]) is not None
    )
