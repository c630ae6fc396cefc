"""RMS_NORM and BATCH_NORM; LAYER_NORM and GROUP_NORM have files of their own."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.schema.base import (
    FLOATS,
    NARROW,
    Case,
    KernelAttr,
    Tolerance,
    cases,
    grid,
    real,
    stored,
    sum_error,
)
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.core import bfloat16
from jitkernels.errors import AttrError


class RmsNormAttr(KernelAttr, kernel_type="RMS_NORM"):
    """y[i, j, k] = x[i, j, k] / sqrt(mean over m of x[i, m, k] ** 2 + eps) * scale[j].

    Without `affine` there is no scale. Zhang and Sennrich, Root Mean Square Layer Normalization, 2019.
    bfloat16 is computed in float32 and rounded once, at the end.
    """

    rows: int
    n: int
    remain: int = 1
    eps: float = real(default=1e-5, least=0.0, samples=(0.0, 1e-3, 0.5))
    affine: bool = True
    dtype: str = stored(*NARROW, default="float32")
    arrays = (
        Argument("x", "in", "*rows n *remain", in_place=True),
        Argument("scale", "in", "n", when="affine"),
        Argument("y", "out", "*rows n *remain", in_place=True),
    )
    floats = ("eps",)
    options = ("axis", "eps")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows * self.remain > 0:
            raise AttrError("RmsNormAttr: n: expected at least 1 where there are rows, got 0")

    def tolerance(self) -> Tolerance:
        """One sum; a root, a division and two products."""
        return Tolerance(ulp=4 + sum_error(self.n), terms=4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """The errors where squares or quotients underflow; there is no bound where all squares do, or overflow."""
        x, *scale = arrays[:-1]
        if x.size == 0:
            return [x]
        limits = bfloat16.limits(self.dtype)
        with np.errstate(all="ignore"):
            squares = np.square(x).sum(axis=1, keepdims=True)
            mean = squares / self.n + self.eps
            lost = float(limits.tiny) * (1 + np.abs(x) / np.sqrt(mean) / mean)
            if scale:
                lost = lost * np.abs(scale[0])[:, np.newaxis]
        return [np.where((squares < float(limits.max)) & (mean > float(limits.tiny)), lost, np.inf)]

    def operations(self) -> float:
        return 4.0 * self.rows * self.n * self.remain

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (1, 8, 1), (3, 7, 1), (4, 64, 1), (5, 1000, 1), (2, 31, 5)]
        full = [
            *((rows, n, 1) for rows in (1, 16, 256) for n in (64, 100, 768, 1024, 4096)),
            *((rows, n, remain) for rows in (1, 16) for n in (64, 256) for remain in (49, 1024)),
        ]

        def attrs(shapes: Sequence[tuple[int, int, int]], affine: bool = True) -> list[KernelAttr]:
            return grid(cls, "rows n remain", shapes, dtype=NARROW, affine=(affine,))

        return cases(attrs(full), ci=attrs(ci) + attrs(ci[2:4], affine=False))


class BatchNormAttr(KernelAttr, kernel_type="BATCH_NORM"):
    """y[i, c, k] = (x[i, c, k] - mean[c]) / sqrt(var[c] + eps) * scale[c] + bias[c], as at inference.

    Without `affine` there are no scale and bias. All dimensions after the second are `inner`. Ioffe and Szegedy, Batch
    Normalization, 2015.
    """

    rows: int
    channels: int
    inner: int = 1
    eps: float = real(default=1e-5, least=0.0, samples=(0.0, 1e-3, 0.5))
    affine: bool = True
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "rows channels *inner", in_place=True),
        Argument("mean", "in", "channels"),
        Argument("var", "in", "channels", domain=(0.25, 2.0)),
        Argument("scale", "in", "channels", when="affine"),
        Argument("bias", "in", "channels", when="affine"),
        Argument("y", "out", "rows channels *inner", in_place=True),
    )
    floats = ("eps",)
    options = ("eps",)
    streams = ((64, 256, 1024), (4096, 4096, 1))

    def tolerance(self) -> Tolerance:
        """A difference, a sum, a root, a division, two products and a sum."""
        return Tolerance(ulp=2, terms=6)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|x - mean| * |scale| / deviation + |bias|; there is no bound where products overflow or underflow."""
        x, mean, var, *affine = arrays[:-1]
        limits = np.finfo(self.dtype)
        with np.errstate(all="ignore"):
            factor = 1 / np.sqrt(var + self.eps)
            scale, bias = (np.abs(array) for array in affine) if affine else (np.ones_like(var), np.zeros_like(var))
            scaled = factor * scale
            difference = np.abs(x - mean[:, np.newaxis])
            allowed = difference * scaled[:, np.newaxis] + bias[:, np.newaxis]
            lost = float(limits.tiny) * (difference + scale[:, np.newaxis])
            largest = float(limits.max)
            outside = (
                (difference > largest)
                | (scaled > largest)[:, np.newaxis]
                | (difference * scaled[:, np.newaxis] > largest)
            )
        return [np.where(outside, np.nan, allowed + lost)]

    def operations(self) -> float:
        return 4.0 * self.rows * self.channels * self.inner

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1), (3, 7, 1), (4, 64, 1), (2, 5, 31), (1, 3, 100)]
        full = [
            *((rows, channels, 1) for rows in (1, 64, 1024) for channels in (16, 100, 768)),
            *((rows, 64, inner) for rows in (1, 16) for inner in (49, 784, 12544)),
        ]

        def attrs(shapes: Sequence[tuple[int, int, int]], affine: bool = True) -> list[KernelAttr]:
            return grid(cls, "rows channels inner", shapes, dtype=FLOATS, affine=(affine,))

        return cases(attrs(full), ci=attrs(ci) + attrs(ci[2:4], affine=False))
