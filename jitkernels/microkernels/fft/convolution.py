"""Transforms of any length as a convolution with a chirp (Bluestein, 1970).

``j k`` is ``(j**2 + k**2 - (k - j)**2) / 2``.
"""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.codegen.source_protocol import inlined, noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.factors import Limits
from jitkernels.microkernels.fft.plan import CHIRP, IMAGE, KEY, LENGTH, keep_plan, key_of, padded, planning_of
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.transform import Scales, smooth_of
from jitkernels.microkernels.heap_scratch import is_null

MAX_PLAN_BYTES = 1 << 25
"""Plans of larger tables are not kept, so that those of a kernel take at most half a gigabyte."""


@inlined("contract")
def product(a: Any, b: Any, c: Any, d: Any) -> Any:
    """``(a + i b) (c + i d)``."""
    return a * c - b * d, a * d + b * c


class Rows(NamedTuple):
    """The functions of transforms of rows of any length. take: a plan, or null; keep: put it back."""

    take: Any
    transform: Any
    keep: Any


def rows_of(dtype: str, limits: Limits) -> Rows:
    """Return these functions of a dtype.

    ``transform(words, n, x, y, scratch, scales)`` may have its result in place of what it reads.
    """
    number, size = np.dtype(dtype).type, dtypes.named(dtype).size
    tables, plan, smooth = tables_of(dtypes.named(dtype).c), planning_of(dtype, limits), smooth_of(dtype, limits)
    one, zero, limit = number(1), number(0), MAX_PLAN_BYTES // size

    @inlined()
    def multiply(x: Any, n: int, factors: Any, y: Any, sign: Any) -> None:
        """``y = x * factors``, x conjugated where the sign is negative."""
        for k in range(n):
            re, im = product(x[2 * k], sign * x[2 * k + 1], factors[2 * k], factors[2 * k + 1])
            y[2 * k] = re
            y[2 * k + 1] = im

    @inlined()
    def clear(x: Any, begin: int, end: int) -> None:
        for k in range(2 * begin, 2 * end):
            x[k] = zero

    @noinline()
    def fill_image(words: Any, n: int, scratch: Any) -> None:
        """The transform of the chirp's conjugate, around 0 in both directions."""
        length, chirp, image = words[LENGTH], offset(tables(words), words[CHIRP]), offset(tables(words), words[IMAGE])
        clear(scratch, n, length)
        for k in range(n):
            scratch[2 * k] = chirp[2 * k]
            scratch[2 * k + 1] = -chirp[2 * k + 1]
        for k in range(1, n):
            scratch[2 * (length - k)] = chirp[2 * k]
            scratch[2 * (length - k) + 1] = -chirp[2 * k + 1]
        smooth(words, scratch, image, offset(scratch, padded(2 * length)), Scales(one, one, one))

    @noinline()
    def convolve(words: Any, n: int, x: Any, y: Any, scratch: Any, scales: Scales) -> None:
        length, chirp, image = words[LENGTH], offset(tables(words), words[CHIRP]), offset(tables(words), words[IMAGE])
        second, rest = offset(scratch, padded(2 * length)), offset(scratch, 2 * padded(2 * length))
        multiply(x, n, chirp, scratch, scales.sign)
        clear(scratch, n, length)
        smooth(words, scratch, second, rest, Scales(one, one, one))
        multiply(second, length, image, scratch, one)
        part = one / number(length)
        smooth(words, scratch, second, rest, Scales(-one, part, -part))
        multiply(second, n, chirp, scratch, one)
        for k in range(n):
            y[2 * k] = scales.re * scratch[2 * k]
            y[2 * k + 1] = scales.im * scratch[2 * k + 1]

    @inlined()
    def take(n: int, beside: bool, real: bool, scratch: Any) -> Any:
        words = plan(n, beside, real)
        if is_null(words) == 0 and words[KEY] == 0:
            if words[LENGTH] != n:
                fill_image(words, n, scratch)
            words[KEY] = key_of(n, beside, real)
        return words

    @inlined()
    def transform(words: Any, n: int, x: Any, y: Any, scratch: Any, scales: Scales) -> None:
        if words[LENGTH] == n:
            smooth(words, x, y, scratch, scales)
        else:
            convolve(words, n, x, y, scratch, scales)

    @inlined()
    def keep(words: Any) -> None:
        keep_plan(words, limit)

    return Rows(take, transform, keep)
