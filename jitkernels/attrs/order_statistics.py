"""ORDER_STATISTICS: elements of sorted rows at some indices, without sorting the rows."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError, DataIndexError


class OrderStatisticsAttr(KernelAttr, kernel_type="ORDER_STATISTICS"):
    """y[i, j] = element k[j] of the sorted row x[i], NaN last as in NumPy; -0.0 sorts before 0.0.

    Every k must be in 0..n - 1; otherwise nothing is written. No other thread may write to k during the call.
    """

    rows: int
    n: int
    count: int
    dtype: str = "float32"
    streams = ((1 << 14, 1024, 1),)
    arrays = (
        Argument("x", "in", "*rows n"),
        Argument("k", "in", "count", dtype="int64", domain=(0, "n")),
        Argument("y", "out", "*rows count"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.count > 0:
            raise AttrError("OrderStatisticsAttr: n: expected at least 1 where there are indices, got 0")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=0)

    def operations(self) -> float:
        return 3.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 7, 2), (4, 64, 3), (2, 130, 130), (2, 1000, 2)]
        full = [(1, n, count) for n in (16, 100, 1000, 10_000, 100_000, 1_000_000) for count in (1, 2, 9)]
        full += [(64, n, count) for n in (128, 1000, 50_257) for count in (2, 50)]
        return cases(grid(cls, "rows n count", full, dtype=FLOATS), ci=grid(cls, "rows n count", ci, dtype=FLOATS))

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        k = arrays[1]
        wrong = np.flatnonzero((k < 0) | (k >= self.n))
        if wrong.size:
            at = int(wrong[0])
            raise DataIndexError(
                f"order_statistics: k: expected 0 to {self.n - 1} (the elements of a row), got {int(k[at])} at [{at}]"
            )
