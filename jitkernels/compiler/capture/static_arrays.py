"""Static arrays: constant-folded at trace time and embedded in the compiled code.

Their values are known, so functions may branch on them. They have an array type of their own, which results of NumPy
functions inherit: that type tells that an array depends on static arrays only.
"""

import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Self

import numpy as np

from jitkernels.compiler.ir import pytree
from jitkernels.core.aligned_memory import aligned_empty, is_aligned

_copies: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_packed: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
"""Packed forms of arrays, by the origin of these, by what of it they show, and by the layout."""


class Origin(NamedTuple):
    """Where an array that never changes comes from: a token of its elements, and the memory in which they lie now."""

    token: Hashable
    begin: int
    end: int

    @classmethod
    def of(cls, array: Any, token: Hashable) -> Self:
        """The origin of a contiguous array. Arrays of equal tokens have equal elements."""
        return cls(token, array.ctypes.data, array.ctypes.data + array.nbytes)


class Frozen(np.ndarray[Any, Any]):
    """A static array, or a result computed from static arrays only. `origin`: of an array that never changes."""

    origin: Origin | None

    def __array_finalize__(self, obj: Any) -> None:
        origin = getattr(obj, "origin", None)
        is_view = origin is not None and origin.begin <= self.ctypes.data < origin.end
        self.origin = origin if is_view else None

    def key(self) -> Hashable | None:
        """What tells equal views of arrays of one token; None without an origin."""
        if self.origin is None:
            return None
        return self.origin.token, self.ctypes.data - self.origin.begin, self.shape, self.strides, self.dtype.str


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
    copy = aligned_empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def packed_array(source: Frozen, layout: Hashable, pack: Callable[[Any], Any]) -> Any:
    """The packed form of a static array, aligned to cache lines; all code shares that of an array with an origin."""
    source_key = source.key()
    key = source_key, layout
    packed = _packed.get(key) if source_key is not None else None
    if packed is None:
        packed = pack(source)
        packed = packed if is_aligned(packed) else cache_aligned(packed)
        if source_key is not None:
            _packed[key] = packed
    return packed
