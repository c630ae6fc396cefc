"""CDIST: every row of one matrix against every row of another."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.row_similarity import cosine_terms
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, choice, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument

METRICS = ("euclidean", "sqeuclidean", "cosine", "dot")


class CDistAttr(KernelAttr, kernel_type="CDIST"):
    """z[i, j] = sum over p of (x[i, p] - y[j, p]) ** 2 (sqeuclidean), its root (euclidean), or another metric.

    cosine: 1 - x[i] . y[j] / |x[i]| / |y[j]|, at least 0, NaN where a vector is zero; dot: x[i] . y[j] itself. The
    squares are those of the differences, not x . x - 2 x . y + y . y, which cancels for near vectors: each distance is
    off by at most d / 2 + 6 ULP, a cosine by three times as many units of 1.
    """

    m: int
    n: int
    d: int
    metric: str = choice(*METRICS, default="euclidean")
    dtype: str = "float32"
    arrays = (Argument("x", "in", "*m d"), Argument("y", "in", "n d"), Argument("z", "out", "*m n"))
    options = ("metric",)

    def tolerance(self) -> Tolerance:
        """A chain of d products in any order, of rounded differences; roots and divisions."""
        return Tolerance(ulp=2, terms=(1.5 * self.d if self.metric == "cosine" else self.d / 2) + 4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The absolute products, the squares, or 2 where they are divided by norms."""
        x, y, _ = arrays
        if self.metric == "dot":
            return [np.abs(x) @ np.abs(y).T]
        if self.metric == "cosine":
            return [cosine_terms(np.square(x).sum(-1)[:, np.newaxis], np.square(y).sum(-1), self.dtype)]
        squares = squared_distances(x, y)
        if self.metric == "sqeuclidean":
            return [squares]
        limits, farthest = np.finfo(self.dtype), largest_differences(x, y)
        fine = (farthest == 0) | (farthest > (float(limits.tiny) / float(limits.eps)) ** 0.5)
        return [np.where(fine & (squares < float(limits.max) / 2), np.sqrt(squares), np.inf)]

    def operations(self) -> float:
        return (2.0 if self.metric in ("dot", "cosine") else 3.0) * self.m * self.n * self.d

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 5, 7), (6, 9, 17), (1, 50, 33), (70, 100, 20)]
        full = [(1, 1000, 128), (100, 100, 3), (64, 64, 64), (100, 1000, 128), (512, 512, 768), (2000, 2000, 32)]
        return cases(
            grid(cls, "m n d", full, dtype=FLOATS, metric=METRICS),
            ci=grid(cls, "m n d", ci, dtype=FLOATS, metric=("euclidean", "cosine")),
        )


def squared_distances(x: AnyArray, y: AnyArray) -> AnyArray:
    """The squared distance of every pair of rows, one column at a time: no array of m * n * d."""
    total: AnyArray = np.zeros((len(x), len(y)), x.dtype)
    for p in range(x.shape[1]):
        total += np.square(np.subtract.outer(x[:, p], y[:, p]))
    return total


def largest_differences(x: AnyArray, y: AnyArray) -> AnyArray:
    """The largest difference along any column, of every pair of rows."""
    largest: AnyArray = np.zeros((len(x), len(y)), x.dtype)
    for p in range(x.shape[1]):
        np.maximum(largest, np.abs(np.subtract.outer(x[:, p], y[:, p])), out=largest)
    return largest
