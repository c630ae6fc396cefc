"""How threads divide transforms: by rows, and what a body takes of them."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.microkernels.chunking import grain

FFT_THREAD_ELEMENTS = 1 << 14
"""Least number of elements per thread."""
FftAttr = FftC2CAttr | FftR2CAttr | FftC2RAttr


class FftArrays(NamedTuple):
    """The arrays, and the factor of results."""

    x: Any
    y: Any
    scale: Any


class RowRange(NamedTuple):
    """The rows of a thread."""

    begin: int
    end: int


def block_of(attr: FftAttr) -> int:
    """Rows of a thread's least part."""
    row = sum(array.nbytes for array in attr.signature().arrays) // max(attr.rows, 1)
    return grain(row // (2 * np.dtype(attr.dtype).itemsize), FFT_THREAD_ELEMENTS)


def threads_of(attr: FftAttr) -> list[dict[str, Any]]:
    """The `variants` of a transform: one thread, and several where two of them get two blocks of rows each."""
    return [{}, {"parallel": True}] if attr.rows >= 4 * block_of(attr) else [{}]
