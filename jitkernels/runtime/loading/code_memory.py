"""Memory for machine code: whole pages out of large mappings, taken again when nobody can call what was there.

Pages are written first and executed then, never both at once; those of data behind them are written to all the time,
and never executed. Mappings are private, so that a forked child has its own pages. Neighbours have the same rights,
which makes them one mapping to the system, of which it allows 65530.
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
"""Where pages begin that nothing was in yet, and where they end."""
_free: dict[int, deque[int]] = {}
"""Pages that were given back, by how many lie together."""


@functools.cache
def _system() -> Any:
    system = ctypes.CDLL(None, use_errno=True)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    system.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return system


def _protect(address: int, size: int, rights: int) -> None:
    if _system().mprotect(address, size, rights):
        number = ctypes.get_errno()
        raise OSError(number, f"no memory for code: error {number} of mprotect")


@functools.cache
def _clear_cache() -> Any:
    """What lets a processor see code that was written as data: a function of two addresses, None where all do."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return None
    clear = ctypes.CDLL("libgcc_s.so.1").__clear_cache
    clear.argtypes, clear.restype = (ctypes.c_void_p, ctypes.c_void_p), None
    return clear


class Pages:
    """Some pages. Whoever holds the object may write to them until they are `closed`, and call what is there then."""

    def __init__(self, size: int, data: int = 0) -> None:
        """Take pages for so many bytes of code, and of data behind it; `making` is held."""
        self.code = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self.size = self.code - -data // mmap.PAGESIZE * mmap.PAGESIZE
        self.address = self._again() or self._unused()

    def _again(self) -> int:
        """Pages that were given back; 0 if there are none."""
        try:
            address = _free[self.size].pop()
        except (KeyError, IndexError):
            return 0
        _protect(address, self.size, READ | WRITE)
        return address

    def _unused(self) -> int:
        # Taken before they are looked at: a signal handler may need pages meanwhile.
        begin, end = _new.pop() if _new else (0, 0)
        if begin + self.size > end:
            mapping = mmap.mmap(
                -1, max(MAPPING, self.size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, READ | WRITE
            )
            # Never taken down: threads of ours are in code when the interpreter ends.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(mapping))
            _mappings.append(mapping)
            begin = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
            end = begin + len(mapping)
        _new.append((begin + self.size, end))
        return begin

    @property
    def data_address(self) -> int:
        """Where the pages of data begin."""
        return self.address + self.code

    def close(self) -> None:
        """No code is written here any more."""
        if not self.code:
            return
        if _clear_cache() is not None:
            _clear_cache()(self.address, self.address + self.code)
        _protect(self.address, self.code, READ | EXECUTE)

    def __del__(self, _is_over: Any = sys.is_finalizing, _free: Any = _free, _system: Any = _system) -> None:
        """Give the memory to the system, and the pages to whoever comes next; at any time, so that no lock is taken."""
        if _is_over() or not hasattr(self, "address"):
            return  # threads that run on while Python ends may still be there
        _system().madvise(self.address, self.size, mmap.MADV_DONTNEED)
        _free.setdefault(self.size, deque()).append(self.address)
