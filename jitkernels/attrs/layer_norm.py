"""LAYER_NORM over the last axis of a matrix."""

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
    dtype_name,
    float_arrays,
    power_of_two,
    size_class,
)
from jitkernels.errors import ArgumentError, AttrError
from jitkernels.signature import Array, Signature


class LayerNormAttr(KernelAttr, kernel_type="LAYER_NORM"):
    """y[i, j] = (x[i, j] - mean(x[i])) / sqrt(var(x[i]) + eps) * scale[j] + bias[j], with the biased variance.

    Without `affine` there are no scale and bias.
    """

    rows: int
    n: int
    eps: float = 1e-5
    affine: bool = True
    dtype: str = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps < 0:
            raise AttrError(f"LayerNormAttr: eps: expected 0 or more, got {self.eps}")
        if self.n == 0 and self.rows > 0:
            raise AttrError("LayerNormAttr: n: expected at least 1 where there are rows, got 0")

    def signature(self) -> Signature:
        shape = (self.rows, self.n)
        x = Array("x", "in", shape, self.dtype, in_place=True)
        y = Array("y", "out", shape, self.dtype, in_place=True)
        parameters = (
            [Array(name, "in", (self.n,), self.dtype) for name in ("scale", "bias")] if self.affine else []
        )
        return Signature((x, *parameters, y), (("rows", self.rows), ("n", self.n)), (("eps", self.eps),))

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

    def tuning_class(self) -> Self:
        """Rows at the next power of two, n too but exact up to 64, and the usual eps."""
        extents = {"rows": power_of_two(self.rows), "n": size_class(self.n)}
        return type(self)(**extents, affine=self.affine, dtype=self.dtype)

    @classmethod
    def call(cls, x: Any, scale: Any = None, bias: Any = None, eps: float = 1e-5) -> Call:
        if (scale is None) != (bias is None):
            raise ArgumentError("layer_norm: scale and bias: expected both or neither")
        affine = {} if scale is None else {"scale": scale, "bias": bias}
        array, *parameters = float_arrays("layer_norm", x=x, **affine)
        if array.ndim == 0:
            raise ArgumentError("layer_norm: x: expected at least 1 dimension, got 0")
        n = array.shape[-1]
        rows = array.size // n if n else 0
        for name, parameter in zip(affine, parameters, strict=True):
            if parameter.shape != (n,):
                raise ArgumentError(f"layer_norm: {name}: expected shape {(n,)}, got {parameter.shape}")
        attr = cls(rows=rows, n=n, eps=eps, affine=bool(affine), dtype=dtype_name(array))
        return Call(attr, [array.reshape(rows, n), *parameters], [array.shape])
