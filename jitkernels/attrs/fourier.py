"""FFT_C2C, FFT_R2C and FFT_C2R: discrete Fourier transforms of rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError

SIZES = (1, 2, 3, 8, 12, 17, 60, 64)
"""Lengths of quick tests: powers of two, small primes, and a prime without a pass of its own."""


def fourier_terms(n: int) -> float:
    """The terms of the error bound: a rounding error for each factor of two, of sums and roots."""
    return 4.0 + 3.0 * math.log2(max(n, 1) + 1)


class FftC2CAttr(KernelAttr, kernel_type="FFT_C2C"):
    """y[r, k, c] = scale * sum over j of x[r, j, c] * exp(-2 pi i j k / n), complex numbers as pairs of two numbers.

    The sign of the exponent is positive if `inverse`. Each number of `columns` neighbours has a transform of its own.
    ``jk.fft`` and ``jk.ifft`` call it for arrays of complex numbers.
    """

    rows: int
    n: int
    columns: int
    inverse: bool = False
    scale: float = real(default=1.0, samples=(1.0, 0.25))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n columns 2"), Argument("y", "out", "*rows n columns 2"))
    floats = ("scale",)
    options = ("inverse", "scale")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=1, terms=fourier_terms(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute values of all parts of a column."""
        x, _ = arrays
        total = abs(self.scale) * np.abs(x).sum(axis=(1, 3), keepdims=True)
        return [np.broadcast_to(total, x.shape)]

    def operations(self) -> float:
        return 5.0 * self.rows * self.n * self.columns * max(math.log2(max(self.n, 1)), 1.0)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, n, 1) for n in (1, 8, 60)] + [(2, 17, 1), (3, 128, 2), (1, 30, 19)]
        full = [(1, n, 1) for n in (2, 3, 64, 101, 1000, 1009, 1024, 4096, 10_000, 10_007, 16_384, 44_100, 65_537)]
        full += [(1, 1 << 18, 1), (1, 1 << 20, 1), (64, 256, 1), (1, 256, 256), (8, 1000, 3), (2, 101, 7)]
        return cases(
            grid(cls, "rows n columns", full, dtype=FLOATS, inverse=(False, True)),
            ci=grid(cls, "rows n columns", ci, dtype=FLOATS, inverse=(False, True)),
        )
