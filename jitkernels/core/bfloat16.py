"""bfloat16 arrays in NumPy, which has no such dtype: kernels take and return their bits as uint16.

Arrays whose dtype another package registers as ``bfloat16``, such as ml_dtypes, have the same bits and need no
conversion.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from jitkernels.core import dtypes

BFLOAT16_NAME = "bfloat16"
AnyArray = np.ndarray[Any, np.dtype[Any]]


def is_foreign(dtype: "np.dtype[Any]") -> bool:
    """Whether a dtype is another package's bfloat16."""
    return dtype.name == BFLOAT16_NAME and dtype.itemsize == 2 and dtype.isnative


def numbers(array: AnyArray) -> AnyArray:
    """Decode bfloat16 bits to float32; arrays of any other dtype are returned unchanged."""
    if array.dtype != np.uint16 and not is_foreign(array.dtype):
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def stored(values: Any) -> AnyArray:
    """Encode values as bfloat16 bits, rounded once to nearest, ties to even; NaN stays NaN."""
    wide = np.asarray(values)
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        if wide.dtype.itemsize > 4:
            # Double rounding could break ties wrongly: round to odd in float32 first, then to nearest even.
            bits, exact = near.view(np.uint32), near.astype(wide.dtype) == wide
            beyond = np.abs(near) > np.abs(wide)
            below = np.where(np.isfinite(near) & beyond, bits - np.uint32(1), bits)
            near = np.where(exact | ~np.isfinite(near), bits, below | np.uint32(1)).astype(np.uint32).view(np.float32)
    bits = near.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.asarray(np.where(np.isnan(near), (bits >> np.uint32(16)) | np.uint32(0x40), rounded).astype(np.uint16))


class _Limits:
    """The attributes of `np.finfo` for bfloat16."""

    eps, epsneg = 2.0**-7, 2.0**-8
    max = (2.0 - 2.0**-7) * 2.0**127
    tiny, smallest_subnormal = 2.0**-126, 2.0**-133


@functools.cache
def limits(dtype: str) -> Any:
    """`np.finfo` of a dtype, bfloat16 included; cached, as NumPy takes microseconds to look it up."""
    return _Limits if dtype == BFLOAT16_NAME else np.finfo(dtype)


def foreign_among(arrays: Iterable[AnyArray]) -> "np.dtype[Any] | None":
    """The first dtype among arrays that is another package's bfloat16, or None."""
    return next((array.dtype for array in arrays if is_foreign(array.dtype)), None)


def is_float(dtype: str) -> bool:
    """Whether `dtype` is a floating-point element type."""
    return dtypes.named(dtype).is_float
