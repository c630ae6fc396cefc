"""Dask arrays as arguments, recognized without importing dask before the program has."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

DASK_MODULE = "dask.array.core"
"""The module that defines the type."""


def are_among(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether any of the arguments of a call is a dask array."""
    module: Any = sys.modules.get(DASK_MODULE)
    kind = getattr(module, "Array", None)
    return kind is not None and any(isinstance(one, kind) for one in (*args, *kwargs.values()))
