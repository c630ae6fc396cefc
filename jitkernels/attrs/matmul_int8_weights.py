"""MATMUL_INT8_WEIGHTS: the product of floats and 8-bit weights, quantized in groups."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.quantized_weights import ROUNDED, QuantizedWeightsAttr
from jitkernels.attrs.schema.base import FLOATS, Case, cases, choice, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument


class MatMulInt8WeightsAttr(QuantizedWeightsAttr, kernel_type="MATMUL_INT8_WEIGHTS"):
    """c[i, j] = sum over g of scale[j, g] * sum over p of group g of a[i, p] * (q[j, p] - zero[j, g]).

    q are int8 for n columns of k = groups * size weights. Each group of consecutive weights along k has a scale and,
    if `shifted`, a zero point: q is [n, groups, size], scale and zero are [n, groups]. With a single group they are
    per column. To quantize float columns w in groups of 32::

        parts = w.reshape(n, -1, 32)
        scale = np.abs(parts).max(-1) / 127
        q = np.rint(parts / np.maximum(scale, 1e-30)[..., None]).astype(np.int8)

    In float32 the elements of a may be rounded before the products: to 24 bits relative to the largest of their block
    of 32 (the first to the 32nd, and so on), or to 16 or 8 bits if `rounded` is "int16" or "int8", which is faster
    where processors multiply integers.
    """

    m: int
    n: int
    groups: int
    size: int
    shifted: bool = False
    rounded: str = choice(*ROUNDED, default="float")
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*m groups*size"),
        Argument("q", "in", "n groups size", dtype="int8", domain=(-128, 128)),
        Argument("scale", "in", "n groups", domain=(0.001, 0.02)),
        Argument("zero", "in", "n groups", dtype="int8", domain=(-128, 128), when="shifted"),
        Argument("c", "out", "*m n"),
    )
    options = ("rounded",)

    @property
    def k(self) -> int:
        """Weights of a column."""
        return self.groups * self.size

    def whole(self, weights: AnyArray, zero: Any) -> AnyArray:
        """Weights minus zero points."""
        numbers = weights.astype(np.float64)
        return numbers if zero is None else numbers - zero[..., np.newaxis].astype(np.float64)

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (1, 5, 3, 32), (3, 9, 5, 7), (1, 3, 1, 200), (17, 40, 9, 16)]
        full = [(1, 4096, 1, 4096), (1, 4096, 32, 128), (1, 11008, 128, 32), (1, 4096, 344, 32)]
        full += [(8, 4096, 32, 128), (64, 4096, 1, 4096), (512, 4096, 32, 128)]

        def attrs(dtype: str, sizes: Sequence[tuple[int, ...]], shifted: bool) -> list[MatMulInt8WeightsAttr]:
            return grid(cls, "m n groups size", sizes, shifted=(shifted,), dtype=(dtype,))

        rounded = [
            cls(m=m, n=n, groups=groups, size=size, shifted=shifted, rounded=kind)
            for m, n, groups, size in [(1, 5, 3, 32), (5, 9, 2, 128)]
            for shifted in (False, True)
            for kind in ROUNDED[1:]
        ]
        return cases(
            attrs("float32", full, False)
            + attrs("float32", full[:2], True)
            + [cls(m=1, n=4096, groups=32, size=128, rounded=kind) for kind in ROUNDED[1:]],
            ci=[attr for dtype in FLOATS for attr in attrs(dtype, ci, False) + attrs(dtype, ci[1:4], True)] + rounded,
        )
