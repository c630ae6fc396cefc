"""SOFTMAX over the last axis of a matrix."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases, sum_error
from jitkernels.errors import AttrError
from jitkernels.signature import AnyArray, Argument


class SoftmaxAttr(KernelAttr, kernel_type="SOFTMAX"):
    """y[i, j] = exp(x[i, j] - max(x[i])) / sum over k of exp(x[i, k] - max(x[i]))."""

    rows: int
    n: int
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n", in_place=True, domain=(-8.0, 8.0)),
        Argument("y", "out", "*rows n", in_place=True),
    )
    options = ("axis",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows > 0:
            raise AttrError("SoftmaxAttr: n: expected at least 1 where there are rows, got 0")

    def tolerance(self) -> Tolerance:
        """Two exponentials of 4 ULP each, a division and a product; and a sum of positive terms."""
        return Tolerance(ulp=12 + sum_error(self.n), terms=1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """What rounding the differences d does: exp(d) is off by a unit for each unit of d, and so is the sum."""
        x = arrays[0]
        if x.size == 0:
            return [x]
        differences = x - x.max(axis=-1, keepdims=True)
        y = np.exp(differences)
        y /= y.sum(axis=-1, keepdims=True)
        weighted = np.where(y > 0, y * -differences, 0)  # exp(-inf) is exact
        return [weighted + y * weighted.sum(axis=-1, keepdims=True)]

    def operations(self) -> float:
        return 20.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (2, 31), (4, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 16, 256) for n in (2, 8, 10, 32, 64, 100, 512, 1000, 4096)]
        return cases(
            [cls(rows=rows, n=n, dtype=dtype) for dtype in FLOATS for rows, n in full],
            ci=[cls(rows=rows, n=n, dtype=dtype) for dtype in FLOATS for rows, n in ci],
        )
