"""Casts that take more than the processor's instruction to be what NumPy makes of a number."""

from typing import Any

import numpy as np

from jitkernels.native.source import inlined

SIGN_32 = np.int32(-(2**31))
SIGN_64 = np.int64(-(2**63))


@inlined()
def half(x: np.float64) -> np.float16:
    """The nearest float16, rounded once."""
    return np.float16(x)


@inlined()
def uint32(x: Any) -> np.uint32:
    """A float as uint32; what is out of range, as where C has a signed conversion alone."""
    low = np.int32(x)
    return np.uint32(np.int32(x - 2147483648.0) ^ SIGN_32 if x >= 2147483648.0 else low)


@inlined()
def uint64(x: Any) -> np.uint64:
    """A float as uint64; what is out of range, as where C has a signed conversion alone."""
    low = np.int64(x)
    return np.uint64(np.int64(x - 9223372036854775808.0) ^ SIGN_64 if x >= 9223372036854775808.0 else low)
