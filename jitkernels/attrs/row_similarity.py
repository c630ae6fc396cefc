"""Rowwise similarities of two matrices: DOT, SQEUCLIDEAN and COSINE."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import NARROW, Case, KernelAttr, Tolerance, cases, grid, stored, sum_error
from jitkernels.attrs.schema.bf16_tolerance import flushed
from jitkernels.attrs.schema.signature import AnyArray, Argument


class PairsAttr(KernelAttr):
    """Fields of kernels of pairs of vectors: rows, their number, n, their length, and dtype."""

    rows: int
    n: int
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*rows n"), Argument("y", "in", "*rows n"), Argument("z", "out", "*rows"))

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        known = cls.known_fields()["dtype"].dtypes
        ci = [(1, 1), (1, 8), (3, 7), (4, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 16, 1000) for n in (3, 16, 64, 128, 768, 1536, 4096)] + [(1, 1 << 22)]
        return cases(grid(cls, "rows n", full, dtype=known), ci=grid(cls, "rows n", ci, dtype=known))


class DotAttr(PairsAttr, kernel_type="DOT"):
    """z[i] = sum over j of x[i, j] * y[i, j].

    bfloat16 is accumulated in float32, and its subnormal numbers may be flushed to zero.
    """

    dtype: str = stored(*NARROW, default="float32")

    def tolerance(self) -> Tolerance:
        """A sum of products."""
        return Tolerance(ulp=1, terms=1 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum of |x * y|."""
        x, y, _ = arrays
        products = np.abs(x * y)
        return [(products + flushed(products, x, y, self.dtype)).sum(axis=-1)]

    def operations(self) -> float:
        return 2.0 * self.rows * self.n


class SqEuclideanAttr(PairsAttr, kernel_type="SQEUCLIDEAN"):
    """z[i] = sum over j of (x[i, j] - y[i, j]) ** 2, computed from the differences: nothing cancels."""

    def tolerance(self) -> Tolerance:
        """A sum of positive terms, each of a difference that is rounded once."""
        return Tolerance(ulp=1, terms=3 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The sum of squares."""
        x, y, _ = arrays
        return [np.square(x - y).sum(axis=-1)]

    def operations(self) -> float:
        return 3.0 * self.rows * self.n


class CosineAttr(PairsAttr, kernel_type="COSINE"):
    """z[i] = 1 - (sum of x[i] * y[i]) / sqrt(sum of x[i] ** 2) / sqrt(sum of y[i] ** 2): a distance, at least 0.

    NaN where a vector is zero, as in the formula. The error is relative to 1, so that directions that differ by less
    than about the root of the dtype's precision are indistinguishable.
    """

    def tolerance(self) -> Tolerance:
        """Three sums, two roots, two divisions, a difference."""
        return Tolerance(ulp=1, terms=6 + 2 * sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """1, and the absolute products divided by the norms; there is no bound where squares overflow or underflow."""
        x, y, _ = arrays
        return [cosine_terms(np.square(x).sum(axis=-1), np.square(y).sum(axis=-1), self.dtype)]

    def operations(self) -> float:
        return 6.0 * self.rows * self.n


def cosine_terms(x_squares: AnyArray, y_squares: AnyArray, dtype: str) -> AnyArray:
    """The magnitude of a cosine distance's error: 2, infinite where squares nearly over- or underflow."""
    limits = np.finfo(dtype)
    fine = np.ones(np.broadcast_shapes(x_squares.shape, y_squares.shape), bool)
    for squares in (x_squares, y_squares):
        fine &= (squares > float(limits.tiny) / float(limits.eps) ** 2) & (squares < float(limits.max) / 4)
    return np.where(fine, 2.0, np.inf)
