"""MATMUL_INT4: the product of floats and 4-bit weights, quantized in groups."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.quantized_weights import ROUNDED, QuantizedWeightsAttr
from jitkernels.attrs.schema.base import FLOATS, Case, cases, choice, grid
from jitkernels.attrs.schema.signature import AnyArray, Argument


class MatMulInt4Attr(QuantizedWeightsAttr, kernel_type="MATMUL_INT4"):
    """c[i, j] = sum over g of scale[j, g] * sum over p of group g of a[i, p] * (q[j, p] - zero[j, g]).

    q are ints from 0 to 15 for n columns of k = 2 * groups * half weights. Each group of 2 * half consecutive weights
    along k has a scale and a zero point, which is 8 without `shifted`. Two weights are packed in a byte, the first in
    its lower half: packed is [n, groups, half] of uint8, scale and zero are [n, groups], as in ONNX Runtime's
    MatMulNBits with bits=4, which packs zero points as well. To quantize float columns w in groups of 32::

        parts = w.reshape(n, -1, 32)
        scale = np.abs(parts).max(-1) / 7
        q = np.clip(np.rint(parts / np.maximum(scale, 1e-30)[..., None]) + 8, 0, 15).astype(np.uint8)
        packed = q[..., 0::2] | q[..., 1::2] << 4

    In float32 the elements of a may be rounded before the products: to 24 bits relative to the largest of their block
    of 32 (the first to the 32nd, and so on), or to 16 or 8 bits if `rounded` is "int16" or "int8", which is faster
    where processors multiply integers.

    One row in float32 is bound by arithmetic: 128 bytes take 12 VPDPBUSD and 15 other instructions, with zero points
    19: 18 and 21 cycles of Zen 4 from its L2 cache, or 27 and 23 GB/s at 3.65 GHz, where memory delivers 32.
    """

    m: int
    n: int
    groups: int
    half: int
    shifted: bool = False
    rounded: str = choice(*ROUNDED, default="float")
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*m 2*groups*half"),
        Argument("packed", "in", "n groups half", dtype="uint8", domain=(0, 256)),
        Argument("scale", "in", "n groups", domain=(0.01, 0.2)),
        Argument("zero", "in", "n groups", dtype="uint8", domain=(0, 16), when="shifted"),
        Argument("c", "out", "*m n"),
    )
    options = ("rounded",)

    @property
    def k(self) -> int:
        """Weights of a column."""
        return 2 * self.groups * self.half

    def whole(self, weights: AnyArray, zero: Any) -> AnyArray:
        """Weights minus zero points, which are 8 by default."""
        bytes_ = weights.astype(np.int64)
        both = np.stack([bytes_ & 15, bytes_ >> 4], -1).reshape(self.n, self.groups, 2 * self.half)
        less: AnyArray = both - (8.0 if zero is None else zero[..., np.newaxis].astype(np.float64))
        return less

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (1, 5, 3, 16), (3, 9, 5, 3), (1, 3, 2, 64), (17, 40, 9, 8)]
        full = [(1, 4096, 32, 64), (1, 4096, 128, 16), (1, 11008, 128, 16), (1, 4096, 344, 16), (8, 4096, 32, 64)]
        full += [(64, 4096, 128, 16), (512, 4096, 32, 64)]

        def attrs(dtype: str, sizes: Sequence[tuple[int, ...]], shifted: bool) -> list[MatMulInt4Attr]:
            return grid(cls, "m n groups half", sizes, shifted=(shifted,), dtype=(dtype,))

        rounded = [
            cls(m=m, n=n, groups=groups, half=half, shifted=shifted, rounded=kind)
            for m, n, groups, half in ci[1:2] + ci[3:4]
            for shifted in (False, True)
            for kind in ("int16", "int8")
        ]
        return cases(
            attrs("float32", full, False)
            + attrs("float32", full[:2], True)
            + [cls(m=1, n=4096, groups=32, half=64, rounded=kind) for kind in ("int16", "int8")],
            ci=[attr for dtype in FLOATS for attr in attrs(dtype, ci, False) + attrs(dtype, ci[1:4], True)] + rounded,
        )
