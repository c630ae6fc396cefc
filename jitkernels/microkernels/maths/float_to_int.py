"""Casts for which NumPy's result takes more than the processor's conversion instruction."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined

SIGN_32 = np.int32(-(2**31))
SIGN_64 = np.int64(-(2**63))


@inlined()
def half(x: np.float64) -> np.float16:
    """The nearest float16, rounded once."""
    return np.float16(x)


@inlined()
def uint32(x: Any) -> np.uint32:
    """A float as uint32; out of range, the result of the signed conversion."""
    low = np.int32(x)
    return np.uint32(np.int32(x - 2147483648.0) ^ SIGN_32 if x >= 2147483648.0 else low)


@inlined()
def uint64(x: Any) -> np.uint64:
    """A float as uint64; out of range, the result of the signed conversion."""
    low = np.int64(x)
    return np.uint64(np.int64(x - 9223372036854775808.0) ^ SIGN_64 if x >= 9223372036854775808.0 else low)
