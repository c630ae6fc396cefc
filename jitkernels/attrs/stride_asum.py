"""STRIDE_ASUM: the sum of absolute values of every stride-th element."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, sum_error, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument


class StrideASumAttr(KernelAttr, kernel_type="STRIDE_ASUM"):
    """y[i] = sum of |x[i, j]| over all j divisible by `stride`; 0 for n = 0.

    Paddle's reference adds the first element itself and not its absolute value.
    """

    rows: int
    n: int
    stride: int = whole(default=1, least=1, samples=(2, 3, 7))
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n"), Argument("y", "out", "*rows"))
    options = ("stride",)

    def tolerance(self) -> Tolerance:
        """One sum of positive terms."""
        return Tolerance(ulp=2 + sum_error(self.n // self.stride + 1))

    def operations(self) -> float:
        return 2.0 * self.rows * self.n / self.stride

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 7, 2), (4, 64, 1), (2, 100, 3), (5, 1000, 16)]
        full = [(rows, n, s) for rows in (1, 64) for n in (64, 1000, 65536) for s in (1, 2, 4, 17)]
        return cases(grid(cls, "rows n stride", full, dtype=FLOATS), ci=grid(cls, "rows n stride", ci, dtype=FLOATS))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        return [np.abs(arrays[0][:, :: self.stride]).sum(axis=1)]
