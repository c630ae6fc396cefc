"""Which arguments and globals of a function compiled code cannot take: statements that mention them break."""

import types
from collections.abc import Mapping
from typing import Any

from jitkernels.compiler.capture.free_variables import around, globals_of, names_of
from jitkernels.compiler.capture.graph_breaks.break_sites import lines_named
from jitkernels.compiler.capture.graph_breaks.divided_code import is_set, lines_of_code
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


def callees_named(function: types.FunctionType, text: str) -> frozenset[str]:
    """The names of globals and free variables that are functions in which a message names a line."""
    table, code = function.__globals__, function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    known = {name: cell.cell_contents for name, cell in cells if is_set(cell)}
    values = {**{name: table.get(name) for name in names_of(code).names}, **known}
    functions = {name: one.__code__ for name, one in values.items() if isinstance(one, types.FunctionType)}
    return frozenset(name for name, own in functions.items() if lines_named(text, own.co_filename) & lines_of_code(own))


def _is_opaque(value: Any) -> bool:
    try:
        _check_copies(Flattener(()).argument(value))
    except (UnsupportedError, TypeError):
        return True
    return False


def _check_copies(structure: Any) -> None:
    """Raise UnsupportedError for an object that is not copied, also one that a function refers to."""
    if type(structure) is not tuple:
        return
    if structure and structure[0] == "object" and isinstance(structure[1], type):
        blank(structure[1])
    for part in structure:
        _check_copies(part)
