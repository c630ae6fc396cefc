"""Memory aligned to cache lines, so that vector loads that begin at an array's first element cross none."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.core.cpu_target import CACHE_LINE_BYTES


def aligned_memory(size: int) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    """`size` bytes of uninitialized memory, aligned to a cache line."""
    memory = np.empty(size + CACHE_LINE_BYTES, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[first : first + size]


def aligned_empty(shape: Sequence[int], dtype: Any) -> Any:
    """An uninitialized array in C order, aligned to a cache line."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return aligned_memory(size).view(dtype).reshape(shape)


def is_aligned(array: Any) -> bool:
    """Whether an array lies in C order and is aligned to a cache line."""
    return bool(array.flags.c_contiguous) and array.ctypes.data % CACHE_LINE_BYTES == 0
