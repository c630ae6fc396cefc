"""LAYER_NORM over the last axis of a matrix."""

from collections.abc import Iterable

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases, real
from jitkernels.errors import AttrError
from jitkernels.signature import Argument


class LayerNormAttr(KernelAttr, kernel_type="LAYER_NORM"):
    """y[i, j] = (x[i, j] - mean(x[i])) / sqrt(var(x[i]) + eps) * scale[j] + bias[j], with the biased variance.

    Without `affine` there are no scale and bias.
    """

    rows: int
    n: int
    eps: float = real(default=1e-5, least=0.0, samples=(0.0, 1e-3, 0.5))
    affine: bool = True
    dtype: str = "float32"
    arrays = (
        Argument("x", "in", "*rows n", in_place=True),
        Argument("scale", "in", "n", when="affine"),
        Argument("bias", "in", "n", when="affine"),
        Argument("y", "out", "*rows n", in_place=True),
    )
    floats = ("eps",)
    options = ("eps",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n == 0 and self.rows > 0:
            raise AttrError("LayerNormAttr: n: expected at least 1 where there are rows, got 0")

    def tolerance(self) -> Tolerance:
        """Sums of n terms lose sqrt(n) units; values are of order 10 for inputs from the domain."""
        unit = float(np.finfo(self.dtype).eps)
        return Tolerance(ulp=8, absolute=unit * (32 + 4 * self.n**0.5))

    def operations(self) -> float:
        return 8.0 * self.rows * self.n

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1), (1, 8), (3, 7), (2, 31), (4, 64), (5, 1000)]
        full = [(rows, n) for rows in (1, 16, 256) for n in (8, 32, 64, 100, 512, 768, 1000, 4096)]
        return cases(
            [cls(rows=rows, n=n, dtype=dtype) for dtype in FLOATS for rows, n in full],
            ci=[
                cls(rows=rows, n=n, affine=affine, dtype=dtype)
                for dtype in FLOATS
                for affine in (True, False)
                for rows, n in ci
            ],
        )
