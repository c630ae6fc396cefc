"""FFT_C2C, FFT_R2C and FFT_C2R by numba: plain loops, with roots of unity that each call computes.

Real rows are complex ones without imaginary parts, and their inverse has the conjugates that are not stored.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.attrs.fourier import FftC2CAttr, FftC2RAttr, FftR2CAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.fft.factors import doubled, of_large_primes
from jitkernels.microkernels.fft.row_ranges import FftAttr, block_of, threads_of
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, real, usable
from jitkernels.more.numba.stockham import PLANES, fill_tables, first_turn, is_last, length_of, transform, turns_of


@implements(FftC2CAttr, can_be_used=usable, variants=threads_of)
def fft_c2c(attr: FftC2CAttr, parallel: bool = False) -> RangeKernel:
    inverse = attr.inverse

    def body(x: Any, y: Any, scale: Any, sizes: RowArguments, workspace: Any, begin: int, end: int) -> None:
        n, columns = sizes.n, sizes.columns
        factor, sign = real(scale[0]), real(-1) if inverse else real(1)
        length = length_of(n)
        first, each = first_turn(n, length), turns_of(n, length)
        fill_tables(workspace, n, length)
        for turn in range(first, (end - begin) * columns * each):
            item = begin * columns + turn // each
            base = 2 * (item // columns * n * columns + item % columns) if columns > 0 else 0
            for j in range(n if turn >= 0 and turn % each == 0 else 0):
                workspace[j] = x[base + 2 * columns * j]
                workspace[length + j] = sign * x[base + 2 * columns * j + 1]
            at = transform(workspace, n, length, turn, each)
            for j in range(n if is_last(turn, each) else 0):
                y[base + 2 * columns * j] = factor * workspace[at + j]
                y[base + 2 * columns * j + 1] = sign * factor * workspace[at + length + j]

    return _kernel(attr, body, parallel)


@implements(FftR2CAttr, can_be_used=usable, variants=threads_of)
def fft_r2c(attr: FftR2CAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, scale: Any, sizes: RowArguments, workspace: Any, begin: int, end: int) -> None:
        n, bins = sizes.n, sizes.bins
        factor = real(scale[0])
        for i in range(2 * begin * bins, 2 * end * bins if n == 0 else 0):
            y[i] = real(0)
        length = length_of(n)
        first, each = first_turn(n, length), turns_of(n, length)
        fill_tables(workspace, n, length)
        for turn in range(first, (end - begin) * each if n > 0 else 0):
            row = begin + turn // each
            for j in range(n if turn >= 0 and turn % each == 0 else 0):
                workspace[j], workspace[length + j] = x[row * n + j], real(0)
            at = transform(workspace, n, length, turn, each)
            for k in range(bins if is_last(turn, each) else 0):
                y[2 * (row * bins + k)] = factor * workspace[at + k]
                im = factor * workspace[at + length + k]
                y[2 * (row * bins + k) + 1] = im if k > 0 and 2 * k != n else real(0)

    return _kernel(attr, body, parallel)


@implements(FftC2RAttr, can_be_used=usable, variants=threads_of)
def fft_c2r(attr: FftC2RAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, scale: Any, sizes: RowArguments, workspace: Any, begin: int, end: int) -> None:
        n, bins = sizes.n, sizes.bins
        factor = real(scale[0])
        length = length_of(n)
        first, each = first_turn(n, length), turns_of(n, length)
        fill_tables(workspace, n, length)
        for turn in range(first, (end - begin) * each if n > 0 else 0):
            row = begin + turn // each
            for k in range(n // 2 + 1 if turn >= 0 and turn % each == 0 else 0):
                at = 2 * (row * bins + k)
                re, im = x[at], x[at + 1] if k > 0 and 2 * k != n else real(0)
                back = n - k if k > 0 else 0
                workspace[back], workspace[length + back] = re, im
                workspace[k], workspace[length + k] = re, -im  # conjugates, as the inverse transforms
            result = transform(workspace, n, length, turn, each)
            for j in range(n if is_last(turn, each) else 0):
                y[row * n + j] = factor * workspace[result + j]

    return _kernel(attr, body, parallel)


def _kernel(attr: FftAttr, body: Callable[..., None], parallel: bool) -> RangeKernel:
    size = PLANES * np.dtype(attr.dtype).itemsize

    def needed(n: int) -> Any:
        return (n if of_large_primes(n) == 1 else doubled(1, 2 * n - 1)) * size

    return numba_kernel(attr, body, "rows", parallel=parallel, workspace=needed, block=block_of(attr))
