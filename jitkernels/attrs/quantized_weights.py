"""What rows of products of floats and of quantized weights have in common."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.attrs.base import KernelAttr, Tolerance
from jitkernels.signature import AnyArray

ROUNDED = ("float", "int16", "int8")
"""What the numbers of a may be rounded to."""
TOGETHER = 32
"""Floats that may be rounded to a part of the largest of them."""


class QuantizedWeightsAttr(KernelAttr):
    """Fields m, n, groups, shifted, rounded and dtype; columns have k weights in groups with a scale and zero point."""

    if TYPE_CHECKING:  # each row has them at their places among its own
        m: int
        n: int
        groups: int
        shifted: bool
        rounded: str
        dtype: str

    @property
    def k(self) -> int:
        """Weights of a column."""
        raise NotImplementedError

    @property
    def bits(self) -> int:
        """To which each of a is rounded at worst, beside the largest of its neighbours; 0: it is not."""
        if self.dtype != "float32":
            return 0
        return {"int16": 16, "int8": 8}.get(self.rounded, 24)

    def whole(self, weights: AnyArray, zero: Any) -> AnyArray:
        """Weights less zero points, [n, groups, k / groups] of double."""
        raise NotImplementedError

    def tolerance(self) -> Tolerance:
        """A chain of k products in any order; weights may be rounded before they are multiplied, and so may floats."""
        return Tolerance(ulp=1, terms=self.k / 2 + 4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|a| @ (|scale| * |q - zero|), where each of a has what rounding can make of it more."""
        a, weights, scale, *rest = (np.asarray(array) for array in arrays)
        a, scale = np.abs(a.astype(np.float64)), np.abs(scale)
        if self.bits and self.k:
            starts = np.arange(0, self.k, TOGETHER)
            lengths = np.diff(np.append(starts, self.k))
            largest = np.repeat(np.maximum.reduceat(a, starts, axis=-1), lengths, axis=-1)
            eps = float(np.finfo(self.dtype).eps)
            a = a + largest * (2.0 ** (2 - self.bits) / (eps * self.tolerance().terms))
        scaled = np.abs(self.whole(weights, rest[0] if self.shifted else None)) * scale[..., np.newaxis]
        scaled = np.where(scaled > float(np.finfo(self.dtype).max), np.inf, scaled)
        return [a @ scaled.reshape(self.n, self.k).T]

    def operations(self) -> float:
        return 2.0 * self.m * self.n * self.k
