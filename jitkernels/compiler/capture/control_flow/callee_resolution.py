"""Resolve the callees of rewritten functions by object identity, whatever their names.

``prange = range``, a parameter ``size=len``, ``builtins.range`` and ``numba.prange`` all resolve to their objects.
"""

import builtins
import itertools
import sys
from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.control_flow.iterables import (
    LoopIterable,
    enumerate_,
    product_,
    range_,
    reversed_,
    zip_,
)
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.trace_context import current

ITERABLES: dict[Any, Callable[..., Any]] = {
    builtins.range: range_,
    builtins.enumerate: enumerate_,
    builtins.zip: zip_,
    builtins.reversed: reversed_,
    itertools.product: product_,
}
"""Functions that return iterables of loops, and their replacements in a trace."""
_ITERABLES_BY_ID = {id(function): made for function, made in ITERABLES.items()}


def called(function: Any) -> Any:
    """The replacement of a function or type at a call site in a trace; the callee itself if there is none."""
    if current() is None:
        return function
    try:
        return CALLED.get(function, function)
    except TypeError:  # not hashable
        return function


def iterable(function: Any) -> Callable[..., Any]:
    """The replacement of a callee whose result is a loop's iterable; the result may be a `LoopIterable`."""
    if current() is None:
        return function  # type: ignore[no-any-return]
    if _is_prange_of_numba(function):
        function = builtins.range
    replacement = _ITERABLES_BY_ID.get(id(function))
    if replacement is None:
        return _of_python(called(function))

    def call(*arguments: Any, **options: Any) -> Any:
        result = replacement(*arguments, **options)
        if type(result) is LoopIterable:
            result.plain = lambda: function(*map(_plain, arguments), **options)
        return result

    return call


def _of_python(function: Any) -> Callable[..., Any]:
    """A function that cannot take a `LoopIterable`: its arguments become the objects of Python's own functions."""

    def call(*arguments: Any, **options: Any) -> Any:
        keywords = {name: _plain(value) for name, value in options.items()}
        return function(*map(_plain, arguments), **keywords)

    return call


def _plain(value: Any) -> Any:
    return value.plain() if type(value) is LoopIterable and value.plain is not None else value


def _is_prange_of_numba(function: Any) -> bool:
    """Whether this is numba's `prange`, a class that constructs ranges."""
    special = sys.modules.get("numba.misc.special")
    return special is not None and function is special.prange
