"""Arguments with labels: objects of pandas and xarray, whose results have the labels that these libraries give them.

The labels are always computed by the library itself: xarray's objects hold arrays of `jk.xp` while the function runs,
which record what is done with the elements; with pandas, the function runs on objects without rows beside the compiled
code. What neither serves falls back to the plain function.
"""

import math
from typing import Any

from jitkernels.compiler.api import pandas_arguments, xarray_arguments

LIBRARIES = {"pandas": pandas_arguments.call, "xarray": xarray_arguments.call}
"""By package, what serves calls with objects of it; NotImplemented for what it does not serve."""
MIN_LABELLED_ELEMENTS = 1 << 15
"""Elements from which on fusion saves more time than the labels take, some 200 us."""


def library_of(value: Any) -> str:
    """The library of an object with labels; "" of others."""
    kind = type(value)
    library = kind.__module__.partition(".")[0] if hasattr(kind, "__array_ufunc__") else ""
    return library if library in LIBRARIES else ""


def are_small(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the plain function takes less time than labels do."""
    return all(_size(value) < MIN_LABELLED_ELEMENTS for value in (*args, *kwargs.values()) if library_of(value))


def _size(value: Any) -> int:
    """The number of elements, at most: of a dataset those of all its dims."""
    sizes = getattr(value, "shape", None)
    return math.prod(value.sizes.values() if sizes is None else sizes)


def call(library: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a compiled function for labelled arguments; NotImplemented if the plain function is to run."""
    return LIBRARIES[library](function, args, kwargs)
