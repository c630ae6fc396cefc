"""The common base of rows that multiply floats by quantized weights."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr, Tolerance
from jitkernels.attrs.schema.signature import AnyArray

ROUNDED = ("float", "int16", "int8")
"""Formats that the elements of a may be rounded to."""
ROUNDING_BLOCK = 32
"""Block size of that rounding: floats are rounded relative to the largest of their block."""


class QuantizedWeightsAttr(KernelAttr):
    """Fields m, n, groups, shifted, rounded and dtype; columns have k weights in groups with a scale and zero point."""

    if TYPE_CHECKING:  # each schema declares them in its own order
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
        """Bits that an element of a keeps at worst, relative to the largest of its block; 0: it is not rounded."""
        if self.dtype != "float32":
            return 0
        return {"int16": 16, "int8": 8}.get(self.rounded, 24)

    def whole(self, weights: AnyArray, zero: Any) -> AnyArray:
        """Weights minus zero points, [n, groups, k / groups] of float64."""
        raise NotImplementedError

    def tolerance(self) -> Tolerance:
        """A chain of k products in any order; weights and floats may be rounded before the products."""
        return Tolerance(ulp=1, terms=self.k / 2 + 4)

    def absolute_terms(self, arrays: Sequence[AnyArray]) -> Sequence[AnyArray]:
        """|a| @ (|scale| * |q - zero|), where |a| includes its rounding error."""
        a, weights, scale, *rest = (np.asarray(array) for array in arrays)
        a, scale = np.abs(a.astype(np.float64)), np.abs(scale)
        if self.bits and self.k:
            starts = np.arange(0, self.k, ROUNDING_BLOCK)
            lengths = np.diff(np.append(starts, self.k))
            largest = np.repeat(np.maximum.reduceat(a, starts, axis=-1), lengths, axis=-1)
            eps = float(np.finfo(self.dtype).eps)
            a = a + largest * (2.0 ** (2 - self.bits) / (eps * self.tolerance().terms))
        scaled = np.abs(self.whole(weights, rest[0] if self.shifted else None)) * scale[..., np.newaxis]
        scaled = np.where(scaled > float(np.finfo(self.dtype).max), np.inf, scaled)
        return [a @ scaled.reshape(self.n, self.k).T]

    def operations(self) -> float:
        return 2.0 * self.m * self.n * self.k
