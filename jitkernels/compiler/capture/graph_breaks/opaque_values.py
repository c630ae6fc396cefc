"""Which arguments and globals of a function compiled code cannot take: statements that mention them break."""

import types
from collections.abc import Mapping
from typing import Any

from jitkernels.compiler.capture.free_variables import around, globals_of, names_of
from jitkernels.compiler.capture.pytree.flatten import Flattener
from jitkernels.compiler.capture.pytree.unflatten import blank
from jitkernels.compiler.ir.builder import UnsupportedError


def opaque_names(function: types.FunctionType, arguments: Mapping[str, Any]) -> frozenset[str]:
    """The names of arguments, globals and free variables that cannot be flattened, or not be copied for a trace."""
    try:
        outside = {**globals_of(function, names_of(function.__code__).names), **around(function)}
    except UnsupportedError:
        outside = {}
    return frozenset(name for name, value in (*outside.items(), *arguments.items()) if _is_opaque(value))


def _is_opaque(value: Any) -> bool:
    try:
        structure = Flattener(()).argument(value)
        if type(structure) is tuple and structure[0] == "object":
            blank(structure[1])
    except (UnsupportedError, TypeError):
        return True
    return False
