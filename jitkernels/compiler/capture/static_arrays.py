"""Static arrays in a trace: what NumPy makes of them alone is made once, when the code is, and is a part of it.

Their values are known, so functions may decide by them. They are of a type of their own, as is what is computed of
them: by that it is known that an array follows from nothing else.
"""

import weakref
from typing import Any

import numpy as np

_copies: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
LINE = 64
"""Bytes of a line of the cache."""


class Frozen(np.ndarray[Any, Any]):
    """A static array, or what was made of some."""


def frozen(value: Any) -> Any:
    """A static value with its arrays, which may stand in containers, as ones that cannot be written to."""
    if type(value) is np.ndarray:
        found = value.view(Frozen)
        found.flags.writeable = False
        return found
    if type(value) in (tuple, list):
        return type(value)(map(frozen, value))
    if type(value) is dict:
        return {name: frozen(one) for name, one in value.items()}
    return value


def shared_copy(array: Any) -> Any:
    """The copy that code has of a static array: one for all code of which the array has the same elements."""
    key = array.ctypes.data, array.shape, array.strides, array.dtype.str
    found = _copies.get(key)
    if found is None or found.tobytes() != array.tobytes():
        found = _copies[key] = in_lines(array)
    return found


def in_lines(array: Any) -> Any:
    """A copy in C order that begins with a line of the cache: of vectors, none lies in two lines then."""
    room = np.empty(array.nbytes + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    copy = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
