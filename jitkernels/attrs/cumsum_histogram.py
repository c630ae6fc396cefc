"""CUMSUM and HISTOGRAM: running sums, and counts per bin."""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, power_of_two, real, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError


class CumsumAttr(KernelAttr, kernel_type="CUMSUM"):
    """y[i, j] = the sum of x[i, 0] to x[i, j].

    The sum is compensated: its rounding error is carried along the row as well, so that the error does not grow with
    the length of the row, as NumPy's does.
    """

    rows: int
    n: int
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n", in_place=True), Argument("y", "out", "*rows n", in_place=True))
    options = ("axis",)

    @property
    def wide(self) -> type[Any]:
        """The dtype that the reference computes in: the next wider one."""
        return np.float64 if self.dtype == "float32" else np.longdouble

    def tolerance(self) -> Tolerance:
        """A serial chain of at most ten additions."""
        return Tolerance(ulp=1, terms=10)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The running sums of |x|."""
        return [np.cumsum(np.abs(arrays[0]), axis=-1)]

    def operations(self) -> float:
        return float(self.rows * self.n)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (2, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 16, 256) for n in (8, 64, 1000, 4096)] + [(1, 10**5), (1, 10**6), (1, 10**7)]
        return cases(grid(cls, "rows n", full, dtype=FLOATS), ci=grid(cls, "rows n", ci, dtype=FLOATS))


class HistogramAttr(KernelAttr, kernel_type="HISTOGRAM"):
    """counts[i] = the number of x with edges[i] <= x < edges[i + 1]; the last bin includes x = high.

    edges = np.linspace(low, high, bins + 1) in the dtype of x, as in ``np.histogram(x, bins, range=(low, high))``.
    Elements outside low..high and NaN are not counted.
    """

    n: int
    bins: int = whole(default=10, least=1, most=1 << 48, samples=(1, 3, 64, 5000))
    low: float = real(default=0.0, samples=(-1.0, -0.3))
    high: float = real(default=1.0, samples=(1.5, 0.7))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*n"), Argument("counts", "out", "bins", dtype="int64"))
    floats = ("low", "high")
    options = ("bins", "low", "high")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high or not np.isfinite(self.high - self.low):
            raise AttrError(f"HistogramAttr: high: expected more than low, which is {self.low}, got {self.high}")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 5.0 * self.n

    def size_class(self) -> Self:
        """Sizes at the next power of two; the ends do not affect the time, but 0 stays 0."""
        fields = self.fields()
        sizes = {name: min(power_of_two(size), 1 << 48) for name, size in self.extents().items()}
        ends = {"low": -1.0 if self.low else 0.0, "high": 1.0 if self.high else 0.0}
        return type(self)(**fields | sizes | ends)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (7, 3), (64, 10), (1000, 64)]
        full = [(n, bins) for n in (8, 100, 1000, 10**4, 10**5, 10**6, 10**7) for bins in (10, 256, 10_000)]
        return cases(
            grid(cls, "n bins", full, dtype=FLOATS),
            ci=[cls(n=n, bins=bins, low=-1.0, dtype=dtype) for dtype in FLOATS for n, bins in ci],
        )
