"""Arrays beside guard pages: protected memory directly before or after an array.

Tests of all sizes need tens of thousands of them: a mapping is reused as soon as no array lies in it.
"""

import ctypes
import functools
import mmap
import weakref
from typing import Any, Literal

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

Side = Literal["start", "end"]
UNTOUCHED = 0xA5
MAX_FREE_MAPPINGS = 16
"""Pooled mappings of each number of pages."""
MAX_POOLED_PAGES = 64
"""Pages of a pooled mapping: larger ones are rare, and unmapped."""
_PROTECT_NOTHING = 0
_free_mappings: dict[int, list[mmap.mmap]] = {}


class Guarded:
    """A copy of an array with a guard page directly before ("start") or after ("end") it.

    The rest of its own pages holds a pattern that `intact` checks. Where pages cannot be protected, only the
    pattern is checked, as for the elements between the array and a guard page that is `apart` elements away.
    """

    def __init__(self, array: AnyArray, side: Side, *, apart: int = 0) -> None:
        page, between = mmap.PAGESIZE, apart * array.itemsize
        pages = max(1, -(-(array.nbytes + between) // page))
        inside = _inside(pages)
        first = between if side == "start" else pages * page - array.nbytes - between
        self._outside = (inside[:first], inside[first + array.nbytes :])
        for part in self._outside:
            part[...] = UNTOUCHED
        self.array: AnyArray = np.ndarray(array.shape, array.dtype, buffer=inside, offset=first)
        self.array[...] = array

    def intact(self) -> bool:
        """Return whether the memory around the array on its pages is unchanged."""
        return all(bool((part == UNTOUCHED).all()) for part in self._outside)


def _inside(pages: int) -> AnyArray:
    """Return pages between two guard pages; every view of them keeps the mapping from being reused."""
    free = _free_mappings.setdefault(pages, [])
    try:
        memory = free.pop()
    except IndexError:
        memory = _guarded(pages)
    inside: AnyArray = np.frombuffer(memory, np.uint8, pages * mmap.PAGESIZE, mmap.PAGESIZE)
    weakref.finalize(inside, _return_to_pool, free, pages, memory).atexit = False
    return inside


def _return_to_pool(free: list[mmap.mmap], pages: int, memory: mmap.mmap) -> None:
    if pages <= MAX_POOLED_PAGES and len(free) < MAX_FREE_MAPPINGS:
        free.append(memory)


def _guarded(pages: int) -> mmap.mmap:
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, (pages + 2) * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    for offset in (0, (pages + 1) * page):
        _protect(address + offset, page)
    return memory


def _protect(address: int, size: int) -> None:
    library = _c_library()
    if hasattr(library, "mprotect"):
        failed = library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _PROTECT_NOTHING)
        assert not failed, "mprotect refused"


@functools.cache
def _c_library() -> Any:
    return ctypes.CDLL(None)
