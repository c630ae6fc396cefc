"""Transforms of columns: as many beside each other as a vector has lanes, so that nothing is transposed."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import noinline, offset
from jitkernels.core import dtypes
from jitkernels.microkernels.fft.bluestein import rows_of
from jitkernels.microkernels.fft.factors import FftLimits
from jitkernels.microkernels.fft.plan import FIRST_RADICES, FIRST_ROOTS, padded
from jitkernels.microkernels.fft.plan_cache import tables_of
from jitkernels.microkernels.fft.transform import FftScales, Planes, moves_of, plane_size, running_of


def columns_of(dtype: str, limits: FftLimits) -> Any:
    """Return the functions ``(words, n, columns, x, y, scratch, scales)`` that transform all columns of a matrix.

    The first takes as many at once as a vector has lanes, by a plan of columns that has radices; the second one by one.
    """
    lanes, tables = limits.lanes, tables_of(dtypes.named(dtype).c)
    moves, run = moves_of(dtype, lanes), running_of(dtype, lanes, beside=True)
    transform, one = rows_of(dtype, limits).transform, np.dtype(dtype).type(1)

    @noinline()
    def by_radices(words: Any, n: int, columns: int, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        planes = Planes(scratch, plane_size(n * lanes, lanes))
        for first in range(0, columns, lanes):
            live = min(lanes, columns - first)
            imaginary = offset(scratch, planes.size)
            moves.load_columns(offset(x, 2 * first), scratch, imaginary, 2 * columns, n, live, one, scales.sign)
            result = run(offset(words, FIRST_RADICES), n, offset(tables(words), words[FIRST_ROOTS]), planes, scratch)
            imaginary = offset(result, planes.size)
            moves.store_columns(offset(y, 2 * first), result, imaginary, 2 * columns, n, live, scales.re, scales.im)

    @noinline()
    def one_by_one(words: Any, n: int, columns: int, x: Any, y: Any, scratch: Any, scales: FftScales) -> None:
        rest = offset(scratch, padded(2 * n))
        for column in range(columns):
            for k in range(n):
                at = 2 * (k * columns + column)
                scratch[2 * k] = x[at]
                scratch[2 * k + 1] = x[at + 1]
            transform(words, n, scratch, scratch, rest, scales)
            for k in range(n):
                at = 2 * (k * columns + column)
                y[at] = scratch[2 * k]
                y[at + 1] = scratch[2 * k + 1]

    return by_radices, one_by_one
