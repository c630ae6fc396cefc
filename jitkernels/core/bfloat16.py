"""bfloat16 numbers in NumPy, which has none: their bits as uint16, as arrays of kernels hold them.

Arrays of the dtype ``bfloat16`` of other packages, such as ml_dtypes, have the same bits and are taken as they are.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from jitkernels import dtypes

NAME = "bfloat16"
AnyArray = np.ndarray[Any, np.dtype[Any]]


def is_foreign(dtype: "np.dtype[Any]") -> bool:
    """Whether it is another package's bfloat16."""
    return dtype.name == NAME and dtype.itemsize == 2 and dtype.isnative


def numbers(array: AnyArray) -> AnyArray:
    """The values of bits as float32; what holds values already stays as it is."""
    if array.dtype != np.uint16 and not is_foreign(array.dtype):
        return array
    return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def stored(values: Any) -> AnyArray:
    """The bits of values, rounded once to the nearest, of two the one that ends in 0; NaN stays NaN."""
    wide = np.asarray(values)
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        if wide.dtype.itemsize > 4:
            # Rounded twice, ties might not be those of the value: what is inexact ends in an odd bit first.
            bits, exact = near.view(np.uint32), near.astype(wide.dtype) == wide
            beyond = np.abs(near) > np.abs(wide)
            below = np.where(np.isfinite(near) & beyond, bits - np.uint32(1), bits)
            near = (
                np.where(exact | ~np.isfinite(near), bits, below | np.uint32(1))
                .astype(np.uint32)
                .view(np.float32)
            )
    bits = near.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.asarray(
        np.where(np.isnan(near), (bits >> np.uint32(16)) | np.uint32(0x40), rounded).astype(np.uint16)
    )


class _Limits:
    """What NumPy's `finfo` says of its own types."""

    eps, epsneg = 2.0**-7, 2.0**-8
    max = (2.0 - 2.0**-7) * 2.0**127
    tiny, smallest_subnormal = 2.0**-126, 2.0**-133


@functools.cache
def limits(dtype: str) -> Any:
    """`np.finfo`, of bfloat16 too; it takes NumPy microseconds to find."""
    return _Limits if dtype == NAME else np.finfo(dtype)


def foreign_among(arrays: Iterable[AnyArray]) -> "np.dtype[Any] | None":
    """Another package's bfloat16, where one of these arrays has it."""
    return next((array.dtype for array in arrays if is_foreign(array.dtype)), None)


def is_float(dtype: str) -> bool:
    """Whether arrays of that element type hold floating-point numbers."""
    return dtypes.named(dtype).is_float
