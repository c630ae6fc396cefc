"""Objects of xarray as arguments: the function runs on copies that hold lazy arrays, whose operations are fused.

So dims, coordinates, names and attributes are those that xarray gives, for whatever the function does.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.core import hooks

KINDS = ("DataArray", "Dataset", "Variable")
MAX_DEPTH = 8


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result for labelled arguments; NotImplemented where the plain function is to run.

    The plain function runs where it changes its arguments or raises, and for elements that are no arrays of NumPy.
    Evaluation reports no floating-point errors, as xarray ignores those of missing values.
    """
    lazy: dict[int, Any] = {}
    positional = [_lazy(value, lazy) for value in args]
    named = {name: _lazy(value, lazy) for name, value in kwargs.items()}
    if not lazy:
        return NotImplemented
    try:
        result = function.__wrapped__(*positional, **named)
    except Exception:  # noqa: BLE001  # the plain function raises it, or does what lazy arrays cannot
        return NotImplemented
    pairs = [(one, other) for one, other in zip((*args, *kwargs.values()), (*positional, *named.values()), strict=True)]
    if not all(given is copied or _is_unchanged(given, copied) for given, copied in pairs):
        return NotImplemented
    with np.errstate(all="ignore"):
        return _evaluated(result, {id(copied): given for given, copied in pairs}, MAX_DEPTH)


def _lazy(value: Any, made: dict[int, Any]) -> Any:
    """A copy of an object whose arrays are lazy; the value itself where they cannot be."""
    kind = type(value)
    if kind.__module__.partition(".")[0] != "xarray" or kind.__name__ not in KINDS:
        return value
    variables = value.data_vars if kind.__name__ == "Dataset" else {"": value}
    if not variables or not all(map(_is_suitable, variables.values())):
        return value
    arrays = {name: hooks.lazy_array(one.data) for name, one in variables.items()}
    copied = value.copy(deep=False, data=arrays if kind.__name__ == "Dataset" else arrays[""])
    made[id(copied)] = arrays
    return copied


def _is_suitable(variable: Any) -> bool:
    """Whether the elements are an array of NumPy in memory that compiled code reads."""
    data = getattr(variable, "variable", variable)._data
    return type(data) is np.ndarray and is_known(data.dtype)


def _is_unchanged(given: Any, copied: Any) -> bool:
    """Whether a copy still has what was copied."""
    if type(given).__name__ == "Dataset":
        return list(given.variables) == list(copied.variables) and all(
            _is_unchanged(given.variables[name], copied.variables[name]) for name in given.data_vars
        )
    if list(getattr(given, "coords", ())) != list(getattr(copied, "coords", ())):
        return False
    same_names = given.dims == copied.dims and getattr(given, "name", None) == getattr(copied, "name", None)
    return same_names and given.attrs == copied.attrs and copied.data.is_memory_of(given.data)


def _evaluated(result: Any, given: dict[int, Any], depth: int) -> Any:
    """A result with arrays of NumPy in place of lazy ones, in containers, too; arguments as the caller passed them."""
    if id(result) in given:
        return given[id(result)]
    kind = type(result)
    if kind in (tuple, list):
        return kind([_evaluated(one, given, depth - 1) for one in result]) if depth else result
    if kind is dict:
        return {name: _evaluated(one, given, depth - 1) for name, one in result.items()} if depth else result
    if hasattr(kind, "is_evaluated"):
        return np.asarray(result)
    if kind.__module__.partition(".")[0] != "xarray" or kind.__name__ not in KINDS:
        return result
    if kind.__name__ == "Variable":
        return result.copy(deep=False, data=_in_memory(result)) if _is_lazy(result) else result
    lazy_coords = {name: one.variable for name, one in result.coords.items() if _is_lazy(one.variable)}
    if lazy_coords:
        result = result.assign_coords(
            {name: one.copy(deep=False, data=_in_memory(one)) for name, one in lazy_coords.items()}
        )
    if kind.__name__ == "DataArray":
        return result.copy(deep=False, data=_in_memory(result.variable)) if _is_lazy(result.variable) else result
    arrays = {name: _in_memory(one.variable) for name, one in result.data_vars.items()}
    return result.copy(deep=False, data=arrays) if arrays else result


def _is_lazy(variable: Any) -> bool:
    return hasattr(type(variable._data), "is_evaluated")


def _in_memory(variable: Any) -> Any:
    return np.asarray(variable._data) if _is_lazy(variable) else variable._data
