"""Where objects of Python's own types hold their parts: byte offsets that code checks before it uses them."""

import ctypes
import enum
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import is_library
from jitkernels.compiler.capture.numba_dispatchers import as_python
from jitkernels.compiler.capture.pytree.flatten import CYTHON

EQUAL: tuple[type, ...] = (int, str, bytes, range)
"""Types of constants that are guarded by equality."""
SAME: tuple[type, ...] = (
    type(None), bool, float, complex, frozenset, enum.Enum, type, types.BuiltinFunctionType, np.ufunc, np.dtype,
    type(Ellipsis), types.ModuleType, types.MethodDescriptorType, types.WrapperDescriptorType, type(np.sum),
)  # fmt: skip
"""Types of constants that are guarded by identity: immutable ones, and those whose changes have no effect."""
PARTS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    "slice": (("start", "stop", "step"), (16, 24, 32)),
    "method": (("__func__", "__self__"), (16, 24)),
    "partial": (("func", "args", "keywords"), (16, 24, 32)),
}
"""Attributes of composite objects, and their byte offsets in such an object."""
FUNCTION_PARTS = 56, 64
"""Byte offsets of a function's defaults and keyword defaults."""
FUNCTION_CODE = 48
"""Byte offset of a function's code, which module reloaders replace in place."""
FUNCTION_GLOBALS, FUNCTION_CELLS = 16, 72
"""Byte offsets of a function's globals dict and closure tuple."""


def has_parts(value: Any, offsets: Sequence[int], parts: Sequence[Any]) -> bool:
    """Whether an object holds pointers to `parts` at these byte offsets; None may be null."""
    pointers = [ctypes.c_int64.from_address(id(value) + offset).value for offset in offsets]
    return all(
        word in ((0, id(None)) if part is None else (id(part),)) for word, part in zip(pointers, parts, strict=True)
    )


def is_library_function(value: Any) -> bool:
    """Whether a value is a function of a library, compiled by numba or Cython or not."""
    if type(value).__name__ == CYTHON:
        return True
    function = as_python(value)
    return type(function) is types.FunctionType and is_library(function)


def is_own(value: Any, name: str) -> bool:
    """Whether an attribute is stored in the object itself."""
    descriptor = getattr(type(value), name, None)
    if isinstance(descriptor, types.MemberDescriptorType):
        return True
    return name in getattr(value, "__dict__", ()) and not hasattr(descriptor, "__set__")
