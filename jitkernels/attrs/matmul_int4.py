"""MATMUL_INT4: the product of floats and of weights of 4 bits, quantized in groups."""

from collections.abc import Iterable, Sequence

import numpy as np

from jitkernels.attrs.base import FLOATS, Case, KernelAttr, Tolerance, cases
from jitkernels.signature import AnyArray, Argument

TOGETHER = 32
"""Floats that may be rounded to a part of the largest of them."""


class MatMulInt4Attr(KernelAttr, kernel_type="MATMUL_INT4"):
    """c[i, j] = sum over g of scale[j, g] * sum over p of group g of a[i, p] * (q[j, p] - zero[j, g]).

    q are numbers of 0 to 15 for n columns of k = 2 * groups * half weights. Each group of 2 * half of them, which
    follow one another along k, has a scale and a zero point, 8 without `shifted`. Two are a byte, the first in its
    lower half: packed is [n, groups, half] of uint8, scale and zero are [n, groups]. As ONNX Runtime defines
    MatMulNBits with bits=4, whose zero points are packed as well. Numbers of float32 may be rounded before they are
    multiplied, to 2**-23 of the largest of the 32 that they stand among (the first to the 32nd, and so on). Columns w
    of floats are packed so in groups of 32::

        parts = w.reshape(n, -1, 32)
        scale = np.abs(parts).max(-1) / 7
        q = np.clip(np.rint(parts / np.maximum(scale, 1e-30)[..., None]) + 8, 0, 15).astype(np.uint8)
        packed = q[..., 0::2] | q[..., 1::2] << 4
    """

    m: int
    n: int
    groups: int
    half: int
    shifted: bool = False
    dtype: str = "float32"
    arrays = (
        Argument("a", "in", "*m 2*groups*half"),
        Argument("packed", "in", "n groups half", dtype="uint8", domain=(0, 256)),
        Argument("scale", "in", "n groups", domain=(0.01, 0.2)),
        Argument("zero", "in", "n groups", dtype="uint8", domain=(0, 16), when="shifted"),
        Argument("c", "out", "*m n"),
    )

    @property
    def k(self) -> int:
        """Weights of a column."""
        return 2 * self.groups * self.half

    def tolerance(self) -> Tolerance:
        """A chain of k products in any order; weights may be rounded before they are multiplied, and so may floats."""
        return Tolerance(ulp=1, terms=self.k / 2 + 4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|a| @ (|scale| * |q - zero|), where in float32 each of a has 2**-22 of its largest neighbour more."""
        a, packed, scale, *rest = (np.asarray(array) for array in arrays)
        a, scale = np.abs(a), np.abs(scale)
        if self.dtype == "float32" and self.k:
            starts = np.arange(0, self.k, TOGETHER)
            lengths = np.diff(np.append(starts, self.k))
            largest = np.repeat(np.maximum.reduceat(a, starts, axis=-1), lengths, axis=-1)
            a = a + largest * (2 / self.tolerance().terms)
        whole = packed.astype(np.int64)
        zero = rest[0][..., np.newaxis] if self.shifted else 8.0
        both = np.stack([whole & 15, whole >> 4], -1).reshape(self.n, self.groups, 2 * self.half)
        weights = np.abs(both - zero) * scale[..., np.newaxis]
        weights = np.where(weights > float(np.finfo(self.dtype).max), np.inf, weights)
        return [a @ weights.reshape(self.n, self.k).T]

    def operations(self) -> float:
        return 2.0 * self.m * self.n * self.k

    @classmethod
    def sweep(cls) -> Iterable[Case]:
        ci = [(1, 1, 1, 1), (1, 5, 3, 16), (3, 9, 5, 3), (1, 3, 2, 64), (17, 40, 9, 8)]
        full = [
            (1, 4096, 32, 64),
            (1, 4096, 128, 16),
            (1, 11008, 128, 16),
            (1, 4096, 344, 16),
            (8, 4096, 32, 64),
        ]
        full += [(64, 4096, 128, 16), (512, 4096, 32, 64)]

        def attrs(dtype: str, sizes: Sequence[tuple[int, ...]], shifted: bool) -> list[MatMulInt4Attr]:
            return [
                cls(m=m, n=n, groups=groups, half=half, shifted=shifted, dtype=dtype)
                for m, n, groups, half in sizes
            ]

        return cases(
            attrs("float32", full, False) + attrs("float32", full[:2], True),
            ci=[attr for dtype in FLOATS for attr in attrs(dtype, ci, False) + attrs(dtype, ci[1:4], True)],
        )
