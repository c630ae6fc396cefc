"""Recognize arguments that are objects of other libraries, without importing these: most calls have none."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from jitkernels.attrs.schema import foreign_arrays
from jitkernels.compiler.api.labelled_arguments import library_of

DASK, ARRAYS = "dask", "arrays"
"""Dask's arrays, and arrays that export their memory; objects with labels have the names of their libraries."""
DASK_MODULE = "dask.array.core"
"""The module that defines the type of Dask's arrays."""


def libraries_among(args: Sequence[Any], kwargs: Mapping[str, Any]) -> frozenset[str]:
    """The libraries of the arguments of a call."""
    return frozenset([
        _library_of(value) for value in (*args, *kwargs.values()) if type(value) not in foreign_arrays.OWN_TYPES
    ]) - {""}  # fmt: skip


def _library_of(value: Any) -> str:
    module: Any = sys.modules.get(DASK_MODULE)
    kind = getattr(module, "Array", None)
    if kind is not None and isinstance(value, kind):
        return DASK
    return ARRAYS if foreign_arrays.is_foreign(value) else library_of(value)
