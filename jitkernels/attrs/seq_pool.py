"""SEQ_POOL: the rows of one sequence pooled into one row."""

from collections.abc import Iterable

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice
from jitkernels.errors import AttrError
from jitkernels.signature import Argument

POOLS = ("sum", "mean", "sqrt", "max")


class SeqPoolAttr(KernelAttr, kernel_type="SEQ_POOL"):
    """y[j] = sum over i of x[i, j], divided by h (mean) or sqrt(h) (sqrt); or the maximum over i (max)."""

    h: int
    w: int
    pool: str = choice(*POOLS, default="sum")
    dtype: str = "float32"
    arrays = (Argument("x", "in", "h w"), Argument("y", "out", "w"))
    options = ("pool",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.h == 0 and self.pool != "sum":
            raise AttrError(f"SeqPoolAttr: h: expected at least 1 for {self.pool}, got 0")

    def tolerance(self) -> Tolerance:
        """Sums of h terms of order 1 lose sqrt(h) units of a sum of order sqrt(h)."""
        unit = float(np.finfo(self.dtype).eps)
        return Tolerance(ulp=0) if self.pool == "max" else Tolerance(ulp=4, absolute=2 * unit * self.h)

    def operations(self) -> float:
        return float(self.h * self.w)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (10, 31), (17, 64), (50, 1000)]
        full = [(h, w) for h in (1, 4, 16, 100, 1000) for w in (1, 8, 30, 64, 256, 1024)]
        return cases(
            [cls(h=h, w=w, pool=pool, dtype=dtype) for dtype in FLOATS for pool in POOLS for h, w in full],
            ci=[cls(h=h, w=w, pool=pool, dtype=dtype) for dtype in FLOATS for pool in POOLS for h, w in ci],
        )
