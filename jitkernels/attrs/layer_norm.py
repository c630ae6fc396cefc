"""LAYER_NORM over the last axis of a matrix."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real, sum_error
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError


def normalised_terms(x: AnyArray, eps: float, dtype: str) -> AnyArray:
    """The absolute terms of rows minus their mean, divided by their deviation.

    A mean that is rounded once is off by one unit of itself at most, by nothing where the row is constant. Where the
    squares overflow or underflow there is no bound.
    """
    n, limits = x.shape[1], np.finfo(dtype)
    centred = x - x[:, :1]  # exact where a row is constant
    centred -= centred.mean(axis=-1, keepdims=True)
    squares = np.square(centred).sum(axis=-1, keepdims=True)
    deviation = np.sqrt(squares / n + eps)
    shift = np.abs(x).mean(axis=-1, keepdims=True) / deviation * (squares > 0)
    z = np.abs(centred) / deviation
    lost = shift**2 * float(limits.eps) + float(limits.tiny) / deviation**2
    allowed = z * (1 + lost) + z.mean(axis=-1, keepdims=True) + shift / sum_error(n)
    return np.asarray(np.where(squares < float(limits.max), allowed, np.inf))


def moment_terms(x: AnyArray, dtype: str) -> list[AnyArray]:
    """The absolute terms of the mean and variance of rows; the variance is about a rounded mean.

    Where the squares overflow there is no bound of the variance, and of neither where the numbers do.
    """
    limits = np.finfo(dtype)
    size = np.abs(x).mean(axis=-1)
    centred = x - x[:, :1]
    centred -= centred.mean(axis=-1, keepdims=True)
    squares = np.square(centred).sum(axis=-1)
    varies = squares / x.shape[1] + (float(limits.eps) * size**2 + float(limits.tiny)) * (squares > 0)
    fits = squares < float(limits.max)
    return [np.where(np.isfinite(size), size, np.inf), np.where(fits, varies, np.inf)]


class LayerNormAttr(KernelAttr, kernel_type="LAYER_NORM"):
    """y[i, j] = (x[i, j] - mean(x[i])) / sqrt(var(x[i]) + eps) * scale[j] + bias[j], with the biased variance.

    Without `affine` there are no scale and bias. With `stats` mean(x[i]) and var(x[i]) are further results.
    """

    rows: int
    n: int
    eps: float = real(default=1e-5, least=0.0, samples=(0.0, 1e-3, 0.5))
    affine: bool = True
    stats: bool = False
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n", in_place=True),
        Argument("scale", "in", "n", when="affine"),
        Argument("bias", "in", "n", when="affine"),
        Argument("y", "out", "*rows n", in_place=True),
        Argument("mean", "out", "*rows", when="stats"),
        Argument("var", "out", "*rows", when="stats"),
    )
    floats = ("eps",)
    options = ("eps", "stats", "axis")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows > 0:
            raise AttrError("LayerNormAttr: n: expected at least 1 where there are rows, got 0")

    @property
    def wide(self) -> type[Any]:
        """The dtype that the reference computes in: the next wider one, whose squares do not overflow."""
        return np.float64 if self.dtype == "float32" else np.longdouble

    def tolerance(self) -> Tolerance:
        """Two sums; subtraction, root, division, scale and bias."""
        return Tolerance(ulp=2, terms=8 + sum_error(self.n))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|scale| * (|z| + the mean of |z| + the rounding error of the mean) + |bias|, where z * scale + bias is y."""
        x = arrays[0]
        if x.size == 0:
            return [x, *[x[:, :0].sum(axis=1)] * (2 * self.stats)]
        allowed = normalised_terms(x, self.eps, self.dtype)
        if self.affine:
            allowed = allowed * np.abs(arrays[1]) + np.abs(arrays[2])
        return [allowed, *moment_terms(x, self.dtype)] if self.stats else [allowed]

    def operations(self) -> float:
        return 8.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (2, 31), (4, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 4, 16, 64, 256) for n in (2, 8, 32, 64, 100, 512, 768, 1000, 4096)]
        return cases(
            grid(cls, "rows n", full, dtype=FLOATS),
            ci=[
                cls(rows=rows, n=n, affine=affine, stats=stats, dtype=dtype)
                for dtype in FLOATS
                for affine, stats, shapes in ((True, False, ci), (False, False, ci), (True, True, ci[2:5]))
                for rows, n in shapes
            ],
        )
