"""GEMV: a matrix times a vector."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import NARROW, Case, KernelAttr, Tolerance, cases, grid, real, stored
from jitkernels.attrs.schema.bf16_tolerance import flushed_sums
from jitkernels.attrs.schema.signature import AnyArray, Argument


class GEMVAttr(KernelAttr, kernel_type="GEMV"):
    """y = op(a) @ x + beta * y, where op transposes if trans is True.

    op(a) is [m, n]: with trans the array a has the shape [n, m]. With beta = 0 the old content of y is not read.
    bfloat16 is accumulated in float32, and its subnormal numbers may be flushed to zero.
    """

    m: int
    n: int
    trans: bool = False
    beta: float = real(default=0.0, samples=(1.0, -1.5))
    dtype: str = stored(*NARROW, default="float32")
    arrays = (
        Argument("a", "in", "*m n", transposed="trans"),
        Argument("x", "in", "n"),
        Argument("y", "out", "*m", read="beta"),
    )

    def tolerance(self) -> Tolerance:
        """A chain of n products in any order, unblocked in some libraries, with half a unit of error at each step."""
        return Tolerance(ulp=1, terms=self.n / 2 + 2)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|op(a)| @ |x| + |beta * y|."""
        a, x, y = (np.abs(array) for array in arrays)
        matrix = a.T if self.trans else a
        products = matrix @ x + flushed_sums(matrix, x, self.dtype)
        return [products + abs(self.beta) * y if self.beta else products]

    def operations(self) -> float:
        return 2.0 * self.m * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        full = [(n, n) for n in (8, 16, 32, 64, 100, 128, 256, 512, 1024, 2048, 4096)] + [
            (4096, 64),
            (64, 4096),
            *((small, 1024) for small in (1, 4, 16)),
            *((1024, small) for small in (1, 4, 16)),
        ]
        ci = [(1, 1), (3, 7), (17, 64), (100, 33), (300, 130)]
        return cases(
            grid(cls, "m n", full, dtype=NARROW, trans=(False, True)),
            ci=grid(cls, "m n", ci, dtype=NARROW, trans=(False, True)),
        )  # fmt: skip
