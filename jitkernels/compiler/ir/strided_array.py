"""A strided array as generated code addresses it: base pointer in a frame slot, offset, and symbolic strides."""

from dataclasses import dataclass

from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.symbolic_dims import Number


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
