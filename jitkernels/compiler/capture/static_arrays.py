"""Static arrays: constant-folded at trace time and embedded in the compiled code.

Their values are known, so functions may branch on them. They have an array type of their own, which results of NumPy
functions inherit: that type tells that an array depends on static arrays only.
"""

import weakref
from typing import Any

import numpy as np

from jitkernels.compiler.ir import pytree

_copies: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
CACHE_LINE_BYTES = 64
"""Bytes of a cache line (x86-64)."""


class Frozen(np.ndarray[Any, Any]):
    """A static array, or a result computed from static arrays only."""


def frozen(value: Any) -> Any:
    """A static value with read-only arrays, also inside containers."""
    return pytree.tree_map(_frozen_array, value)


def _frozen_array(value: Any) -> Any:
    if type(value) is np.ndarray:
        value = value.view(Frozen)
        value.flags.writeable = False
    return value


def shared_copy(array: Any) -> Any:
    """The copy of a static array in compiled code, shared by all code whose array has the same elements."""
    key = array.ctypes.data, array.shape, array.strides, array.dtype.str
    copy = _copies.get(key)
    if copy is None or copy.tobytes() != array.tobytes():
        copy = _copies[key] = cache_aligned(array)
    return copy


def cache_aligned(array: Any) -> Any:
    """A C-ordered copy aligned to cache lines, so that no vector load crosses a line."""
    room = np.empty(array.nbytes + CACHE_LINE_BYTES, np.uint8)
    begin = -room.ctypes.data % CACHE_LINE_BYTES
    copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
