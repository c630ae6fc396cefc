"""Arrays with a page behind or before them that nothing may touch.

A test of all sizes asks for tens of thousands of them: mappings are used again as soon as no array lies in them.
"""

import ctypes
import functools
import mmap
import weakref
from typing import Any, Literal

import numpy as np

from jitkernels.signature import AnyArray

Side = Literal["start", "end"]
UNTOUCHED = 0xA5
MOST_KEPT = 16
"""Mappings of each number of pages that wait to be used again."""
MOST_PAGES = 64
"""Of a mapping that is kept: larger ones are rare, and given back."""
_PROTECT_NOTHING = 0
_kept: dict[int, list[mmap.mmap]] = {}


class Guarded:
    """A copy of an array with a page that nothing may touch directly before ("start") or after ("end") it.

    The rest of its own pages holds a pattern that `intact` looks for. Where pages cannot be protected, the
    pattern alone tells, as it does for the elements that lie between where the array is so many `apart` from the page.
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
        """Whether nothing was written to the pages of the array beside the array."""
        return all(bool((part == UNTOUCHED).all()) for part in self._outside)


def _inside(pages: int) -> AnyArray:
    """So many pages between two that nothing may touch; every view of them keeps them from being used again."""
    waiting = _kept.setdefault(pages, [])
    try:
        memory = waiting.pop()
    except IndexError:
        memory = _guarded(pages)
    inside: AnyArray = np.frombuffer(memory, np.uint8, pages * mmap.PAGESIZE, mmap.PAGESIZE)
    weakref.finalize(inside, _keep, waiting, pages, memory).atexit = False
    return inside


def _keep(waiting: list[mmap.mmap], pages: int, memory: mmap.mmap) -> None:
    if pages <= MOST_PAGES and len(waiting) < MOST_KEPT:
        waiting.append(memory)


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
