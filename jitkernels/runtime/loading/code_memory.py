"""Memory for machine code: pages from large mappings, reused after their code is freed.

Pages are writable first and executable then, never both (W^X); data pages behind them stay writable and are never
executable. Mappings are private, so that a forked child has its own pages. Adjacent pages with equal rights are one
mapping to the system, which allows 65530.
"""

import ctypes
import functools
import mmap
import platform
import sys
from collections import deque
from typing import Any

MAPPING = 1 << 20
READ, WRITE, EXECUTE = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC
_mappings: list[mmap.mmap] = []
_new: list[tuple[int, int]] = []
"""Unused ranges of mappings: begin and end."""
_free: dict[int, deque[int]] = {}
"""Freed ranges by size."""


@functools.cache
def _system() -> Any:
    system = ctypes.CDLL(None, use_errno=True)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return system


def _protect(address: int, size: int, rights: int) -> None:
    if _system().mprotect(address, size, rights):
        number = ctypes.get_errno()
        raise OSError(number, f"mprotect of code memory failed with error {number}")


@functools.cache
def _clear_cache() -> Any:
    """The function that flushes the instruction cache, of two addresses; None where processors are coherent."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return None
    clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    clear.argtypes, clear.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    return clear


class Pages:
    """Some pages. The holder may write to them until `close`, and call the code then."""

    def __init__(self, size: int, data: int = 0) -> None:
        """Allocate pages for so many bytes of code, and of data behind it; the lock `build_lock` is held."""
        self.code = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.size = self.code - -data // mmap.PAGESIZE * mmap.PAGESIZE
        self.address = self._again() or self._unused()

    def _again(self) -> int:
        """Reuse freed pages; 0 if there are none."""
        try:
            address = _free[self.size].pop()
        except (KeyError, IndexError):
            return 0
        _protect(address, self.size, READ | WRITE)
        return address

    def _unused(self) -> int:
        # Popped before use: a signal handler may allocate pages meanwhile.
        begin, end = _new.pop() if _new else (0, 0)
        if begin + self.size > end:
            mapping = mmap.mmap(-1, max(MAPPING, self.size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, READ | WRITE)
            # Never unmapped: helper threads run this code when the interpreter exits.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(mapping))
            _mappings.append(mapping)
            begin = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
            end = begin + len(mapping)
        _new.append((begin + self.size, end))
        return begin

    @property
    def data_address(self) -> int:
        return self.address + self.code

    def close(self) -> None:
        """Make the code executable."""
        if not self.code:
            return
        if _clear_cache() is not None:
            _clear_cache()(self.address, self.address + self.code)
        _protect(self.address, self.code, READ | EXECUTE)

    def __del__(self, _is_over: Any = sys.is_finalizing, _free: Any = _free, _system: Any = _system) -> None:
        """Return the memory to the system, and the pages to the free list; at any time, so without a lock."""
        if _is_over() or not hasattr(self, "address"):
            return  # helper threads may still run it during exit
        _system().madvise(self.address, self.size, mmap.MADV_DONTNEED)
        _free.setdefault(self.size, deque()).append(self.address)
