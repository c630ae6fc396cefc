"""SEQ_POOL: the rows of one sequence pooled into one row."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from jitkernels.attrs.base import (
    FLOATS,
    Call,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    choice,
    dtype_name,
    float_arrays,
    power_of_two,
    size_class,
)
from jitkernels.errors import ArgumentError, AttrError
from jitkernels.signature import Array, Signature

POOLS = ("sum", "mean", "sqrt", "max")


class SeqPoolAttr(KernelAttr, kernel_type="SEQ_POOL"):
    """y[j] = sum over i of x[i, j], divided by h (mean) or sqrt(h) (sqrt); or the maximum over i (max)."""

    h: int
    w: int
    pool: str = choice(*POOLS, default="sum")
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.h == 0 and self.pool != "sum":
            raise AttrError(f"SeqPoolAttr: h: expected at least 1 for {self.pool}, got 0")

    def signature(self) -> Signature:
        arrays = (Array("x", "in", (self.h, self.w), self.dtype), Array("y", "out", (self.w,), self.dtype))
        return Signature(arrays, (("h", self.h), ("w", self.w)))

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

    def tuning_class(self) -> Self:
        """The height at the next power of two; the width too, but exact up to 64."""
        return type(self)(h=power_of_two(self.h), w=size_class(self.w), pool=self.pool, dtype=self.dtype)

    @classmethod
    def call(cls, x: Any, pool: str = "sum") -> Call:
        (array,) = float_arrays("seq_pool", x=x)
        if array.ndim != 2:
            raise ArgumentError(
                f"seq_pool: x: expected 2 dimensions (rows of one sequence), got {array.ndim}"
            )
        h, w = array.shape
        return Call(cls(h=h, w=w, pool=pool, dtype=dtype_name(array)), [array], [(w,)])
