"""SEQ_POOL: the rows of one sequence pooled into one row."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, grid, sum_error
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError

POOLS = ("sum", "mean", "sqrt", "max")


class SeqPoolAttr(KernelAttr, kernel_type="SEQ_POOL"):
    """y[j] = sum over i of x[i, j], divided by h (mean) or sqrt(h) (sqrt); or the maximum over i (max)."""

    h: int
    w: int
    pool: str = choice(*POOLS, default="sum")
    dtype: str = "float32"
    arrays = (Argument("x", "in", "h w"), Argument("y", "out", "w"))
    options = ("pool",)
    streams = ((4096, 4096), (16, 1 << 20))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.h == 0 and self.pool != "sum":
            raise AttrError(f"SeqPoolAttr: h: expected at least 1 for {self.pool}, got 0")

    def tolerance(self) -> Tolerance:
        """One sum and one division; a maximum is exact."""
        return Tolerance(ulp=0) if self.pool == "max" else Tolerance(ulp=2, terms=sum_error(self.h))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum over i of |x[i, j]|, divided as the result is."""
        divisor = {"mean": self.h, "sqrt": self.h**0.5}.get(self.pool, 1)
        return [np.abs(arrays[0]).sum(axis=0) / divisor]

    def operations(self) -> float:
        return float(self.h * self.w)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (10, 31), (17, 64), (50, 1000)]
        full = [(h, w) for h in (1, 4, 16, 100, 1000) for w in (1, 8, 30, 64, 256, 1024)]
        return cases(
            grid(cls, "h w", full, dtype=FLOATS, pool=POOLS), ci=grid(cls, "h w", ci, dtype=FLOATS, pool=POOLS)
        )
