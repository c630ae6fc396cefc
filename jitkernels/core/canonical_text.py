"""Canonical texts of values for cache keys: equal for equal values of equal types alone, in all processes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.core.hashing import sha256

PLAIN = frozenset({str, bytes, int, float, complex, bool, type(None), type(Ellipsis)})
"""Types whose `repr` identifies a value."""


class UnlikeError(Exception):
    """A value has no canonical text."""


def canonical_text(value: Any, other: Callable[[Any], str] | None = None) -> str:
    """The text of numbers, strings, NumPy's numbers, arrays and dtypes, and containers of these.

    `other` gives the text of all other values. Raises UnlikeError where there is none.
    """
    kind = type(value)
    if kind in PLAIN:
        return repr(value)
    if kind is tuple:
        return f"({', '.join([canonical_text(item, other) for item in value])})"
    if kind is list:
        return f"list{canonical_text(tuple(value), other)}"
    if kind is dict:
        return f"dict{canonical_text(tuple(value.items()), other)}"
    if kind is frozenset:  # its order differs between processes
        return f"frozenset({', '.join(sorted([canonical_text(item, other) for item in value]))})"
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return f"{kind.__name__} {value.tobytes()!r}"  # its repr depends on print options
    if kind is np.ndarray and not value.dtype.hasobject:
        return f"{value.dtype!r}{value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, np.dtype):
        return repr(value)
    if other is None:
        raise UnlikeError
    return other(value)
