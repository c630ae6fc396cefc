"""Memory aligned to cache lines, so that vector loads that begin at an array's first element cross none."""

import math
import mmap
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.core.cpu_target import CACHE_LINE_BYTES

MIN_MAPPED_BYTES, MAX_MAPPED_BYTES = 1 << 22, 1 << 24
"""Sizes from which on NumPy would ask for huge pages, and from which on these pay: where code streams through an array
that no cache holds.
"""
POPULATED = getattr(mmap, "MAP_POPULATE", 0)
"""Get all pages at once, where the system can."""


def aligned_memory(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """`size` bytes of uninitialized memory, aligned to a cache line."""
    memory = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[first : first + size]


def aligned_empty(shape: Sequence[int], dtype: Any) -> Any:
    """An uninitialized array in C order, aligned to a cache line, for weights."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = _small_pages(size) if MIN_MAPPED_BYTES <= size < MAX_MAPPED_BYTES else aligned_memory(size)
    return memory.view(dtype).reshape(shape)


def _small_pages(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """`size` bytes in small pages: NumPy asks for huge ones, which take several times as long to get as to fill."""
    try:
        return np.frombuffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | POPULATED), np.uint8)
    except OSError as error:
        raise MemoryError(f"{size} bytes: {error}") from error


def is_aligned(array: Any) -> bool:
    """Whether an array lies in C order and is aligned to a cache line."""
    return bool(array.flags.c_contiguous) and array.ctypes.data % CACHE_LINE_BYTES == 0
