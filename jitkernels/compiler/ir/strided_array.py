"""A strided array as generated code addresses it: base pointer in a frame slot, offset, and symbolic strides."""

from dataclasses import dataclass

from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.static_dim_policy import MAX_VECTOR_STRIDE
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same


@dataclass(frozen=True)
class StridedArray:
    """Where a materialized node lies: the frame slot `word` of its base, the offset `first`, strides; all in elements.

    `instead`: a loop, and the register that replaces its induction variable here.
    """

    word: int
    strides: tuple[Number, ...]
    dtype: str
    first: Number = 0
    instead: tuple[int, str] | None = None

    def region(self, index_map: IndexMap, ndim: int) -> "StridedArray":
        """The subarray that an index map with `ndim` dimensions selects."""
        first, strides = self.first, [0] * ndim
        for stride, (start, steps) in zip(self.strides, index_map, strict=True):
            first = first + start * stride
            for dimension, step in steps:
                strides[dimension] = strides[dimension] + step * stride
        return StridedArray(self.word, tuple(strides), self.dtype, first)

    def coefficients(self, access_map: IndexMap) -> tuple[Number, dict[int, Number]]:
        """Split the offset of an access map from `first` into a constant, and a coefficient of each loop."""
        constant: Number = 0
        coefficients: dict[int, Number] = {}
        for stride, (start, terms) in zip(self.strides, access_map, strict=True):
            constant = constant + start * stride
            for loop, coefficient in terms:
                coefficients[loop] = coefficients.get(loop, 0) + coefficient * stride
        return constant, {loop: coefficient for loop, coefficient in coefficients.items() if not same(coefficient, 0)}


def is_small_stride(stride: Number) -> bool:
    """Return whether lanes at this constant stride are loaded and stored with whole vectors."""
    return not isinstance(stride, Extent) and 1 <= abs(stride) <= MAX_VECTOR_STRIDE
