"""Transforms of any length as a convolution with a chirp (Bluestein, 1970).

``j k`` is ``(j**2 + k**2 - (k - j)**2) / 2``.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.pair_products import products_of
from jitkernels.microkernels.fft.plan import CHIRP_TABLE, IMAGE_TABLE, KEY_WORD, LENGTH_WORD, key_of, padded
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.plan_part import plan_functions_of
from jitkernels.microkernels.fft.transform import FftScales, smooth_of
from jitkernels.microkernels.heap_scratch import is_null


class RowFunctions(NamedTuple):
    """The functions of transforms of rows of any length. take: a plan, or null; keep: put it back."""

    take: Any
    transform: Any
    keep: Any


def convolution_of(dtype: str, lanes: int, smooth: Any) -> Any:
    """Return the functions that fill the transform of the chirp, ``(words, n, scratch)``, and that convolve a row.

    The latter is ``(words, n, x, y, scratch, scales)``; `smooth` transforms a row whose length has radices.
    """
    number, tables = np.dtype(dtype).type, tables_of(dtypes.named(dtype).c)
    one, zero, multiply = number(1), number(0), products_of(dtype, lanes)

    @inlined()
    def clear(x: Any, begin: int, end: int) -> None:
        for k in range(2 * begin, 2 * end):
            x[k] = zero

    @noinline()
    def fill_image(words: Any, n: int, scratch: Any) -> None:
        """The transform of the chirp's conjugate, around 0 in both directions."""
        length, table = words[LENGTH_WORD], tables(words)
        chirp, image = offset(table, words[CHIRP_TABLE]), offset(table, words[IMAGE_TABLE])
        clear(scratch, n, length)
        for k in range(n):
            scratch[2 * k] = chirp[2 * k]
            scratch[2 * k + 1] = -chirp[2 * k + 1]
        for k in range(1, n):
            scratch[2 * (length - k)] = chirp[2 * k]
            scratch[2 * (length - k) + 1] = -chirp[2 * k + 1]
        smooth(words, scratch, image, offset(scratch, padded(2 * length)), FftScales(one, one, one))

    @noinline()
    def convolve(words: Any, n: int, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        length, table = words[LENGTH_WORD], tables(words)
        chirp, image = offset(table, words[CHIRP_TABLE]), offset(table, words[IMAGE_TABLE])
        second, rest = offset(scratch, padded(2 * length)), offset(scratch, 2 * padded(2 * length))
        multiply(x, n, chirp, scratch, scales.sign, one, one)
        clear(scratch, n, length)
        smooth(words, scratch, second, rest, FftScales(one, one, one))
        multiply(second, length, image, scratch, one, one, one)
        part = one / number(length)
        smooth(words, scratch, second, rest, FftScales(-one, part, -part))
        multiply(second, n, chirp, y, one, scales.re, scales.im)

    return fill_image, convolve


def rows_of(dtype: str, limits: FftLimits) -> RowFunctions:
    """Return these functions of a dtype.

    ``transform(words, n, x, y, scratch, scales)`` may have its result in place of what it reads.
    """
    plan, smooth = plan_functions_of(dtype, limits), smooth_of(dtype, limits)
    fill_image, convolve = convolution_of(dtype, limits.lanes, smooth)

    @inlined()
    def take(n: int, kind: int, scratch: Any) -> Any:
        words = plan.take(n, kind)
        if is_null(words) == 0 and words[KEY_WORD] == 0:
            if words[LENGTH_WORD] != n:
                fill_image(words, n, scratch)
            words[KEY_WORD] = key_of(n, kind)
        return words

    @inlined()
    def transform(words: Any, n: int, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        if words[LENGTH_WORD] == n:
            smooth(words, x, y, scratch, scales)
        else:
            convolve(words, n, x, y, scratch, scales)

    @inlined()
    def keep(words: Any) -> None:
        plan.keep(words)

    return RowFunctions(take, transform, keep)
