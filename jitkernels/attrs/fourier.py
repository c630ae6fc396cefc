"""FFT_C2C, FFT_R2C and FFT_C2R: discrete Fourier transforms of rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real
from jitkernels.attrs.schema.fields import at_least
from jitkernels.attrs.schema.signature import AnyArray, Argument


def fourier_terms(n: int) -> float:
    """The terms of the error bound: a rounding error for each factor of two, of sums and roots."""
    return 4.0 + 3.0 * math.log2(max(n, 1) + 1)


def promised(total: AnyArray, n: int, dtype: str) -> AnyArray:
    """Sums of absolute terms; NaN, as nothing is promised, where one is infinite or intermediates may overflow."""
    return np.where(total * 4 * max(n, 1) < float(np.finfo(dtype).max), total, np.nan)


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
        return [np.broadcast_to(promised(total, self.n, self.dtype), x.shape)]

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


class FftR2CAttr(KernelAttr, kernel_type="FFT_R2C"):
    """y[r, k] = scale * sum over j of x[r, j] * exp(-2 pi i j k / n) for k <= n / 2, as pairs of two numbers.

    The other elements of the transform are conjugates of these. ``jk.rfft`` calls it.
    """

    rows: int
    n: int
    scale: float = real(default=1.0, samples=(1.0, 0.25))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n"), Argument("y", "out", "*rows bins 2"))
    floats = ("scale",)
    options = ("scale",)
    derived = ("bins",)

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"bins": fields["n"] // 2 + 1}

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=1, terms=fourier_terms(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute values of a row."""
        x, y = arrays
        total = promised(abs(self.scale) * np.abs(x).sum(axis=-1), self.n, self.dtype)
        return [np.broadcast_to(total[:, np.newaxis, np.newaxis], y.shape)]

    def operations(self) -> float:
        return 2.5 * self.rows * self.n * max(math.log2(max(self.n, 1)), 1.0)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (3, 2), (2, 8), (1, 15), (2, 34), (1, 60), (1, 256)]
        full = [(1, n) for n in (3, 64, 101, 202, 1000, 1024, 4096, 10_007, 16_384, 44_100, 1 << 18, 1 << 20)]
        full += [(64, 256), (8, 1000)]
        return cases(grid(cls, "rows n", full, dtype=FLOATS), ci=grid(cls, "rows n", ci, dtype=FLOATS))


class FftC2RAttr(KernelAttr, kernel_type="FFT_C2R"):
    """y[r, j] = scale * sum over k < n of x[r, k] * exp(2 pi i j k / n), where x[n - k] is the conjugate of x[k].

    x has the elements up to n / 2 as pairs of two numbers: n = 2 * (bins - 1), and one more if `odd`. Imaginary parts
    of elements that are their own conjugates are not read. ``jk.irfft`` calls it.
    """

    rows: int
    bins: int
    odd: bool = False
    scale: float = real(default=1.0, samples=(1.0, 0.25))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows bins 2"), Argument("y", "out", "*rows n"))
    floats = ("scale",)
    options = ("odd", "scale")
    derived = ("n",)
    one_more = ("bins",)

    @classmethod
    def derive(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"n": at_least(2 * fields["bins"] - 2 + fields["odd"], 0)}

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=1, terms=fourier_terms(self.bins))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute values of a row, of which each stands for two elements."""
        x, y = arrays
        total = promised(2 * abs(self.scale) * np.abs(x).sum(axis=(1, 2)), self.bins, self.dtype)
        return [np.broadcast_to(total[:, np.newaxis], y.shape)]

    def operations(self) -> float:
        return 5.0 * self.rows * self.bins * max(math.log2(max(2 * self.bins, 1)), 1.0)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(3, 2), (2, 5), (1, 8), (2, 18), (1, 31), (1, 129)]
        full = [(1, n) for n in (33, 51, 101, 501, 513, 2049, 5004, 8193, 22_051, (1 << 17) + 1, (1 << 19) + 1)]
        full += [(64, 129), (8, 501)]
        return cases(
            grid(cls, "rows bins", full, dtype=FLOATS, odd=(False, True)),
            ci=grid(cls, "rows bins", ci, dtype=FLOATS, odd=(False, True)),
        )
