"""Maximum of a row, in a loop that LLVM vectorizes with every special value defined.

For floating-point comparisons, LLVM would need the promise that there is no NaN. The bits of a number, all but the sign
flipped where it is negative, are an integer of the same order, and the maximum of integers is one instruction. A
positive NaN is larger than infinity then, and a negative one smaller: it may be lost.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined

REST_32 = np.int32(2**31 - 1)
REST_64 = np.int64(2**63 - 1)


@inlined()
def ordered_32(bits: Any) -> Any:
    """Map the bits of a float32 to an integer of the same order, and back."""
    return bits ^ (bits >> 31 & REST_32)


@inlined()
def ordered_64(bits: Any) -> Any:
    """Map the bits of a float64 to an integer of the same order, and back."""
    return bits ^ (bits >> 63 & REST_64)


@inlined()
def row_maximum_float32(x: Any, begin: int, end: int) -> Any:
    """Largest of x[begin:end]."""
    largest = ordered_32(x[begin].view(np.int32))
    for i in range(begin, end):
        value = ordered_32(x[i].view(np.int32))
        largest = value if value > largest else largest
    return ordered_32(largest).view(np.float32)


@inlined()
def row_maximum_float64(x: Any, begin: int, end: int) -> Any:
    """Largest of x[begin:end]."""
    largest = ordered_64(x[begin].view(np.int64))
    for i in range(begin, end):
        value = ordered_64(x[i].view(np.int64))
        largest = value if value > largest else largest
    return ordered_64(largest).view(np.float64)
