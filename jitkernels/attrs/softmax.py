"""SOFTMAX, LOG_SOFTMAX and CROSS_ENTROPY along one axis."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, sum_error
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError, DataIndexError


class _ExponentialsAttr(KernelAttr):
    """The common fields: rows before the axis, n along it, and remain after it."""

    rows: int
    n: int
    remain: int = 1
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n *remain", in_place=True, domain=(-8.0, 8.0)),
        Argument("y", "out", "*rows n *remain", in_place=True),
    )
    options = ("axis",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows * self.remain > 0:
            raise AttrError(f"{type(self).__name__}: n: expected at least 1 where there are rows, got 0")

    def operations(self) -> float:
        return 20.0 * self.rows * self.n * self.remain

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (1, 8, 1), (3, 7, 1), (2, 31, 1), (4, 64, 1), (5, 1000, 1), (2, 17, 3), (1, 40, 33)]
        full = [
            *((rows, n, 1) for rows in (1, 16, 256) for n in (2, 8, 10, 32, 64, 100, 512, 1000, 4096)),
            *((1, n, remain) for n in (10, 64, 1000) for remain in (8, 100, 1024)),
            *((16, n, remain) for n in (3, 21, 64) for remain in (8, 49, 4096)),
        ]
        return cases(grid(cls, "rows n remain", full, dtype=FLOATS), ci=grid(cls, "rows n remain", ci, dtype=FLOATS))


class SoftmaxAttr(_ExponentialsAttr, kernel_type="SOFTMAX"):
    """y[i, j, k] = exp(x[i, j, k] - max(x[i, :, k])) / sum over m of exp(x[i, m, k] - max(x[i, :, k])).

    Where `remain` is not 1, Paddle's reference takes the maximum over all of `remain` and reads beyond the row; here
    each i and k has its own distribution.
    """

    def tolerance(self) -> Tolerance:
        """Two exponentials of 4 ULP each, a division and a product; and a sum of positive terms."""
        return Tolerance(ulp=12 + sum_error(self.n), terms=1)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The effect of rounding the differences d: exp(d) is off by a unit for each unit of d, and so is the sum."""
        x = arrays[0]
        if x.size == 0:
            return [x]
        differences = x - x.max(axis=1, keepdims=True)
        y = np.exp(differences)
        y /= y.sum(axis=1, keepdims=True)
        weighted = np.where(y > 0, y * -differences, 0)  # exp(-inf) is exact
        return [weighted + y * weighted.sum(axis=1, keepdims=True)]


class LogSoftmaxAttr(_ExponentialsAttr, kernel_type="LOG_SOFTMAX"):
    """y[i, j, k] = x[i, j, k] - max(x[i, :, k]) - log of the sum over m of exp(x[i, m, k] - max(x[i, :, k]))."""

    def tolerance(self) -> Tolerance:
        """Two differences, and a logarithm of a sum."""
        return Tolerance(ulp=4, terms=4 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The difference from the maximum, the logarithm, and 1 for the sum, with the errors of the exponentials."""
        x = arrays[0]
        return [x if x.size == 0 else _log_terms(x)]


class CrossEntropyAttr(KernelAttr, kernel_type="CROSS_ENTROPY"):
    """loss[i] = log of the sum over j of exp(logits[i, j]), minus logits[i, labels[i]].

    Every label must be in 0..n - 1; otherwise nothing is written. No other thread may write to labels during the call.
    The losses are neither summed nor weighted.
    """

    rows: int
    n: int
    dtype: str = "float32"
    arrays = (
        Argument("logits", "in", "*rows n", domain=(-8.0, 8.0)),
        Argument("labels", "in", "*rows", dtype="int64", domain=(0, "n")),
        Argument("loss", "out", "*rows"),
    )
    streams = ((1 << 14, 1024), (4096, 4096))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows > 0:
            raise AttrError("CrossEntropyAttr: n: expected at least 1 where there are rows, got 0")

    def tolerance(self) -> Tolerance:
        """Two differences, and a logarithm of a sum."""
        return Tolerance(ulp=4, terms=4 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """As for LOG_SOFTMAX, at the label."""
        logits, labels = arrays[:2]
        if logits.size == 0:
            return [np.zeros(self.rows)]
        terms = _log_terms(logits[:, :, np.newaxis])[:, :, 0]
        return [np.take_along_axis(terms, labels[:, np.newaxis], axis=1)[:, 0]]

    def operations(self) -> float:
        return 20.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (3, 7), (2, 31), (4, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 16, 256) for n in (2, 10, 100, 1000, 32000)]
        return cases(grid(cls, "rows n", full, dtype=FLOATS), ci=grid(cls, "rows n", ci, dtype=FLOATS))

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        labels = arrays[1]
        wrong = np.flatnonzero((labels < 0) | (labels >= self.n))
        if wrong.size:
            at = int(wrong[0])
            raise DataIndexError(
                f"cross_entropy: labels: expected 0 to {self.n - 1} (the classes of logits), got "
                f"{int(labels[at])} at [{at}]"
            )


def _log_terms(x: AnyArray) -> AnyArray:
    """The absolute terms of a log-softmax along the middle axis: differences, a logarithm, and a sum."""
    with np.errstate(all="ignore"):
        differences = x - x.max(axis=1, keepdims=True)
        terms = np.exp(differences)
        total = terms.sum(axis=1, keepdims=True)
        weighted = np.where(terms > 0, terms * -differences, 0).sum(axis=1, keepdims=True) / total
        allowed = np.abs(differences) + np.log(total) + weighted + 1
    return np.asarray(np.where(np.isinf(differences) & ~np.isnan(total), 0, allowed))
