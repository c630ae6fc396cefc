"""Arrays of other libraries as NumPy arrays that share their memory, by protocol and without importing their packages.

`as_array` tries the conversions of `CONVERSIONS` in order. None of them copies elements, unless the library has no
contiguous memory to share: Arrow columns of several chunks or with nulls, which NumPy reads as copies.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentTypeError

HOST_DEVICES = frozenset({1, 3, 13})
"""DLPack's device types of memory that the processor reads: CPU, pinned and managed CUDA memory."""
OWN_TYPES = frozenset({np.ndarray, float, int, bool, complex, str, type(None), tuple, list, dict})
"""Exact types that are never arrays of another library: most arguments have one of these."""


class NotShareableError(ArgumentTypeError):
    """The memory of an array cannot be read by the processor, or its elements have no dtype of NumPy."""


def is_foreign(value: object) -> bool:
    """Whether `value` is an array of another library that exports its memory.

    Objects with labels or units, which override NumPy's functions and export nothing by DLPack, are not.
    """
    kind = type(value)
    if kind in OWN_TYPES or isinstance(value, np.ndarray | np.generic | type):
        return False
    if hasattr(kind, "__dlpack__"):
        return True
    if hasattr(kind, "__array_ufunc__"):
        return False
    return hasattr(value, "__array_interface__") or (hasattr(kind, "__array__") and _is_arrow(kind))


def _is_arrow(kind: type) -> bool:
    """Whether a type is a column of Arrow, which exports contiguous memory by its array protocol only."""
    return kind.__module__.partition(".")[0] == "pyarrow"


def _by_interface(value: Any) -> Any:
    return np.asarray(value) if hasattr(value, "__array_interface__") else None


def _by_dlpack(value: Any) -> Any:
    if not hasattr(value, "__dlpack__") or getattr(value, "null_count", False):  # Arrow raises for nulls
        return None
    if getattr(value, "is_neg", bool)():  # torch exports a view whose elements are negated when read as it lies
        return None
    try:
        device = value.__dlpack_device__()
    except (AttributeError, ValueError, BufferError, RuntimeError, NotImplementedError):
        device = None  # such as a tensor without memory: the next conversion says why
    if device is not None and int(device[0]) not in HOST_DEVICES:
        raise NotShareableError(f"on device {getattr(value, 'device', device)}, which the processor cannot read")
    try:
        return None if device is None else np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError, NotImplementedError):
        return None  # a dtype that DLPack or NumPy lacks, or a layout


def _by_array_protocol(value: Any) -> Any:
    return np.asarray(value) if hasattr(value, "__array__") else None


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "__array_interface__": _by_interface,
    "__dlpack__": _by_dlpack,
    "__array__": _by_array_protocol,
}
"""By protocol, in the order in which they are tried: a function that gives None where it does not apply."""


def as_array(value: Any) -> Any:
    """An array of another library as a NumPy array that shares its memory.

    Raises NotShareableError, whose text follows "got", for memory of other devices, tensors that require gradients,
    sparse ones, and dtypes that NumPy lacks.
    """
    try:
        for convert in CONVERSIONS.values():
            array = convert(value)
            if array is not None and array.dtype != object:
                return array
    except NotShareableError as error:
        raise NotShareableError(f"{described(value)} {error}") from None
    except Exception as error:  # noqa: BLE001  # whatever a library raises
        raise NotShareableError(f"{described(value)}: {error}") from None
    raise NotShareableError(f"{described(value)}, whose memory NumPy cannot read")


def described(value: Any) -> str:
    """An array of another library in a message: its library and type, with its dtype where that has a name."""
    kind = type(value)
    dtype = getattr(value, "dtype", None) or getattr(value, "type", None)
    text = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
    return text if dtype is None else f"{text} of {dtype}"
