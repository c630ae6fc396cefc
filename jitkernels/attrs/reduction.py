"""Reductions along one axis: HMAX, HMIN, HSUM, HMEAN, HVAR, HARGMAX, HLOGSUMEXP.

Paddle has HMAX and HSUM over one vector. Here any number of dimensions may precede the axis (`rows`) and follow it
(`remain`), so that no axis needs a copy.
"""

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real, sum_error
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError


class ReductionAttr(KernelAttr):
    """Fields of all reductions: n elements along the axis, in rows * remain slices."""

    rows: int
    n: int
    remain: int = 1
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n *remain"), Argument("y", "out", "*rows *remain"))
    options: ClassVar[tuple[str, ...]] = ("axis",)

    def operations(self) -> float:
        return float(self.rows * self.n * self.remain)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 7, 1), (4, 64, 1), (5, 1000, 1), (1, 31, 5), (3, 40, 33)]
        full = [
            *((rows, n, 1) for rows in (1, 16, 256) for n in (8, 64, 100, 1000, 4096)),
            *((1, n, remain) for n in (16, 100, 1000) for remain in (8, 64, 1000)),
            *((rows, n, remain) for rows in (16, 64) for n in (3, 64) for remain in (8, 49, 1024)),
        ]
        return cases(grid(cls, "rows n remain", full, dtype=FLOATS), ci=grid(cls, "rows n remain", ci, dtype=FLOATS))


class NonEmptyReductionAttr(ReductionAttr):
    """Reductions that are undefined for n = 0."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0:
            raise AttrError(f"{type(self).__name__}: n: expected at least 1, got 0")


class HMaxAttr(NonEmptyReductionAttr, kernel_type="HMAX"):
    """y[i, k] = max over j of x[i, j, k]; NaN if any element is NaN."""

    def tolerance(self) -> Tolerance:
        """One of the elements."""
        return Tolerance(ulp=0)


class HMinAttr(NonEmptyReductionAttr, kernel_type="HMIN"):
    """y[i, k] = min over j of x[i, j, k]; NaN if any element is NaN."""

    def tolerance(self) -> Tolerance:
        """One of the elements."""
        return Tolerance(ulp=0)


class HArgMaxAttr(NonEmptyReductionAttr, kernel_type="HARGMAX"):
    """y[i, k] = the first j for which x[i, j, k] is the maximum; the first NaN if there is one."""

    arrays = (
        Argument("x", "in", "*rows n *remain"),
        Argument("y", "out", "*rows *remain", dtype="int64", domain=(0, "n")),
    )

    def tolerance(self) -> Tolerance:
        """An index is exact."""
        return Tolerance(ulp=0)


class HSumAttr(ReductionAttr, kernel_type="HSUM"):
    """y[i, k] = sum over j of x[i, j, k]; 0 for n = 0."""

    def tolerance(self) -> Tolerance:
        """One sum."""
        return Tolerance(ulp=2, terms=sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum over j of |x[i, j, k]|."""
        return [np.abs(arrays[0]).sum(axis=1)]


class HMeanAttr(ReductionAttr, kernel_type="HMEAN"):
    """y[i, k] = sum over j of x[i, j, k], divided by n; NaN for n = 0."""

    def tolerance(self) -> Tolerance:
        """One sum and one division."""
        return Tolerance(ulp=3, terms=sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The mean over j of |x[i, j, k]|; there is no bound where the sum overflows."""
        total = np.abs(arrays[0]).sum(axis=1)
        most = float(np.finfo(self.dtype).max)
        return [np.where(total < most, total / max(self.n, 1), np.inf)]


class HVarAttr(ReductionAttr, kernel_type="HVAR"):
    """y[i, k] = sum over j of (x[i, j, k] - mean) ** 2, divided by n - ddof, or by 0 where that is negative.

    The mean is that of x[i, :, k].
    """

    ddof: float = real(default=0.0, samples=(0.0, 1.0, 0.5))
    floats = ("ddof",)
    options = ("axis", "ddof")

    def tolerance(self) -> Tolerance:
        """Two sums, a difference and a square."""
        return Tolerance(ulp=4, terms=8 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The variance, and the rounding error of the mean in it. There is no bound where squares overflow."""
        x = arrays[0]
        if self.n == 0:
            return [np.zeros((self.rows, self.remain))]
        limits = np.finfo(self.dtype)
        centred = x - x[:, :1]
        centred -= centred.mean(axis=1, keepdims=True)
        squares = np.square(centred).sum(axis=1)
        size = np.abs(x).sum(axis=1)
        moved = (np.abs(x).mean(axis=1) * (1 + sum_error(self.n))) ** 2 * float(limits.eps) * self.n
        left = max(self.n - self.ddof, 0)
        with np.errstate(all="ignore"):
            allowed = (squares + moved) / left + float(limits.tiny)
        most = float(limits.max)
        return [np.where((squares < most) & (size < most), allowed, np.inf)]

    def operations(self) -> float:
        return 4.0 * self.rows * self.n * self.remain


class HLogSumExpAttr(ReductionAttr, kernel_type="HLOGSUMEXP"):
    """y[i, k] = log of the sum over j of exp(x[i, j, k]), without intermediate overflow; -inf for n = 0."""

    arrays = (Argument("x", "in", "*rows n *remain", domain=(-8.0, 8.0)), Argument("y", "out", "*rows *remain"))

    def tolerance(self) -> Tolerance:
        """The maximum and a logarithm, which may cancel."""
        return Tolerance(ulp=4, terms=4 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|maximum| + log of the sum, including the rounding of the differences and the sum."""
        x = arrays[0]
        if self.n == 0:
            return [np.zeros((self.rows, self.remain))]
        largest = x.max(axis=1)
        with np.errstate(all="ignore"):
            differences = x - largest[:, np.newaxis]
            terms = np.exp(differences)
            total = terms.sum(axis=1)
            weighted = np.where(terms > 0, terms * -differences, 0).sum(axis=1) / total
            allowed = np.abs(largest) + weighted + np.log(total) + 1
        return [np.where(np.isinf(largest), 0, allowed)]

    def operations(self) -> float:
        return 20.0 * self.rows * self.n * self.remain
