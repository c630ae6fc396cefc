"""Blocking of float sums: how many elements NumPy adds to one accumulator before it adds pairwise.

Rounding grows with the additions to one accumulator. The error of a sum of n elements is then at most about ADDS +
log2(n) halves of a unit in the last place of the sum of absolute terms, however long the sum is.
"""

import numpy as np

from jitkernels.core import cpu_target

ADDS = 16
"""Elements per accumulator before it is combined with others."""
PARTS = 8
"""Such sums per accumulator before it is added to the total by Knuth's TwoSum."""
INTERLEAVED = 4
"""Accumulators of a loop that LLVM vectorizes: as many vectors as it interleaves."""


def part_length(dtype: str, vector_bytes: int = 64) -> int:
    """Return the elements that a vectorized loop sums before its sum is combined with others."""
    lanes = min(vector_bytes, cpu_target.target().vector_bytes) // np.dtype(dtype).itemsize
    return ADDS * INTERLEAVED * max(lanes, 1)
