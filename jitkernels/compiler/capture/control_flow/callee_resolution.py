"""Resolve the callees of rewritten functions by object identity, whatever their names.

``prange = range``, a parameter ``size=len``, ``builtins.range`` and ``numba.prange`` all resolve to their objects.
"""

import builtins
import itertools
import sys
from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.control_flow import iterables
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.trace_context import current

ITERABLES: dict[Any, Callable[..., Any]] = {
    builtins.range: iterables.range_,
    builtins.enumerate: iterables.enumerate_,
    builtins.zip: iterables.zip_,
    builtins.reversed: iterables.reversed_,
    itertools.product: iterables.product_,
}
"""Functions that return iterables of loops, and their replacements in a trace."""


def _lookup(table: dict[Any, Callable[..., Any]], function: Any, default: Any) -> Any:
    try:
        return table.get(function, default)
    except TypeError:  # not hashable
        return default


def resolve_callee(function: Any) -> Any:
    """The replacement of a function or type at a call site in a trace; the callee itself if there is none."""
    if current() is None:
        return function
    return iterables.range_in_variable if function is builtins.range else _lookup(CALLED, function, function)


def resolve_iterable(function: Any) -> Callable[..., Any]:
    """The replacement of a callee whose result is a loop's iterable; the result may be a `LoopIterable`."""
    if current() is None:
        return function  # type: ignore[no-any-return]
    if _is_prange_of_numba(function):
        function = builtins.range
    replacement = _lookup(ITERABLES, function, None)
    if replacement is None:
        return _with_python_objects(resolve_callee(function))

    def call(*arguments: Any, **options: Any) -> Any:
        result = replacement(*arguments, **options)
        if type(result) is LoopIterable:
            result.python_object = lambda: function(*map(_python_object, arguments), **options)
        return result

    return call


def _with_python_objects(function: Any) -> Callable[..., Any]:
    """A function that cannot take a `LoopIterable`: its arguments become the objects of Python's own functions."""

    def call(*arguments: Any, **options: Any) -> Any:
        keywords = {name: _python_object(value) for name, value in options.items()}
        return function(*map(_python_object, arguments), **keywords)

    return call


def _python_object(value: Any) -> Any:
    return value.python_object() if type(value) is LoopIterable and value.python_object is not None else value


def _is_prange_of_numba(function: Any) -> bool:
    """Whether this is numba's `prange`, a class that constructs ranges."""
    special = sys.modules.get("numba.misc.special")
    return special is not None and function is special.prange
