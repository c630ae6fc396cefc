"""GROUP_NORM over groups of channels and all dimensions after them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.layer_norm import normalised_terms
from jitkernels.attrs.schema.base import FLOATS, Case, KernelAttr, Tolerance, cases, grid, real, sum_error, whole
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.errors import AttrError


class GroupNormAttr(KernelAttr, kernel_type="GROUP_NORM"):
    """y[i, c, k] = (x[i, c, k] - mean) / sqrt(var + eps) * scale[c] + bias[c], over the group of channel c.

    Channels form `groups` of equally many neighbours; mean and biased variance are those of a group's channels and of
    all dimensions after them (`inner`). Without `affine` there are no scale and bias. Wu and He, Group Normalization,
    2018.
    """

    rows: int
    channels: int
    inner: int = 1
    groups: int = whole(default=1, least=1, samples=(1, 2))
    eps: float = real(default=1e-5, least=0.0, samples=(0.0, 1e-3, 0.5))
    affine: bool = True
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "rows channels *inner", in_place=True),
        Argument("scale", "in", "channels", when="affine"),
        Argument("bias", "in", "channels", when="affine"),
        Argument("y", "out", "rows channels *inner", in_place=True),
    )
    floats = ("eps",)
    options = ("groups", "eps")
    streams = ((64, 256, 1024), (4096, 4096, 1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.channels % self.groups:
            raise AttrError(
                f"GroupNormAttr: groups: expected a divisor of the {self.channels} channels, got {self.groups}"
            )

    @property
    def wide(self) -> type[Any]:
        """The dtype that the reference computes in: the next wider one, whose squares do not overflow."""
        return np.float64 if self.dtype == "float32" else np.longdouble

    def tolerance(self) -> Tolerance:
        """Two sums; subtraction, root, division, scale and bias."""
        return Tolerance(ulp=2, terms=8 + sum_error(self.channels // self.groups * self.inner))

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """Those of LAYER_NORM, for each group."""
        x, *affine = arrays[:-1]
        if x.size == 0:
            return [x]
        allowed = normalised_terms(x.reshape(self.rows * self.groups, -1), self.eps, self.dtype).reshape(x.shape)
        if affine:
            allowed = allowed * np.abs(affine[0])[:, np.newaxis] + np.abs(affine[1])[:, np.newaxis]
        return [allowed]

    def operations(self) -> float:
        return 8.0 * self.rows * self.channels * self.inner

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (3, 8, 1, 2), (2, 6, 5, 3), (4, 64, 1, 4), (1, 4, 100, 2)]
        full = [
            *((rows, 64, inner, 32) for rows in (1, 16) for inner in (1, 49, 784, 4096)),
            *((rows, 320, inner, 32) for rows in (1, 4) for inner in (64, 1024)),
        ]

        def attrs(shapes: Sequence[tuple[int, int, int, int]], affine: bool = True) -> list[KernelAttr]:
            return grid(cls, "rows channels inner groups", shapes, dtype=FLOATS, affine=(affine,))

        return cases(attrs(full), ci=attrs(ci) + attrs(ci[2:3], affine=False))
