"""Arrays with a page behind or before them that nothing may touch."""

import ctypes
import mmap
from typing import Literal

import numpy as np

from jitkernels.signature import AnyArray

Side = Literal["start", "end"]
UNTOUCHED = 0xA5
_PROTECT_NOTHING = 0


class Guarded:
    """A copy of an array with a page that nothing may touch directly before ("start") or after ("end") it.

    The rest of its own pages holds a pattern that `intact` looks for. Where pages cannot be protected, the
    pattern alone tells.
    """

    def __init__(self, array: AnyArray, side: Side) -> None:
        page = mmap.PAGESIZE
        inside = max(1, -(-array.nbytes // page)) * page
        self._memory = mmap.mmap(-1, inside + 2 * page)
        whole = np.frombuffer(self._memory, np.uint8)
        whole[page : page + inside] = UNTOUCHED
        first = page if side == "start" else page + inside - array.nbytes
        self.array: AnyArray = np.ndarray(array.shape, array.dtype, buffer=self._memory, offset=first)
        self.array[...] = array
        self._outside = (whole[page:first], whole[first + array.nbytes : page + inside])
        for offset in (0, page + inside):
            _protect(whole.ctypes.data + offset, page)

    def intact(self) -> bool:
        """Whether nothing was written to the pages of the array beside the array."""
        return all(bool((part == UNTOUCHED).all()) for part in self._outside)


def _protect(address: int, size: int) -> None:
    library = ctypes.CDLL(None)
    if hasattr(library, "mprotect"):
        failed = library.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), _PROTECT_NOTHING)
        assert not failed, "mprotect refused"
