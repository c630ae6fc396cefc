"""Arithmetic whose order counts: no fast-math flag of a caller reaches it.

Rounding adds up with the number of additions one after another. So a long sum is cut into blocks, each added
up in many accumulators at once, and the blocks are joined with what each of these few additions lost (Knuth's
two-sum; Neumaier, ZAMM 1974). The error is that of one block, however many there are:

    lost += two_sum_error(total, part)
    total = plus(total, part)
    ...
    total = compensated(total, lost)
"""

from typing import TypeVar

import numpy as np

from jitkernels.codegen.source_protocol import inlined, instruction

Number = TypeVar("Number", np.float32, np.float64)
ZERO_64, INFINITY_64 = np.float64(0), np.float64(np.inf)
SPLITTING_64 = np.float64(2.0**27 + 1)  # a product with it, less the product's low part, has the first half of the bits


@inlined()
def plus(a: Number, b: Number) -> Number:
    return a + b


@inlined()
def times(a: Number, b: Number) -> Number:
    return a * b


@instruction("fma")
@inlined()
def times_plus_float32(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """a * b + c with an unrounded product (FMA)."""
    return np.float32(np.float64(a) * np.float64(b) + np.float64(c))


@instruction("fma")
@inlined()
def times_plus_float64(a: np.float64, b: np.float64, c: np.float64) -> np.float64:
    """a * b + c with an unrounded product (Dekker, Numer. Math. 1971); numbers above 2**990 do round it."""
    a_split, b_split = a * SPLITTING_64, b * SPLITTING_64
    a_high, b_high = a_split - (a_split - a), b_split - (b_split - b)
    a_low, b_low = a - a_high, b - b_high
    product = a * b
    lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return (product + c) + (lost if abs(lost) < INFINITY_64 else ZERO_64)


@inlined()
def two_sum_error(a: Number, b: Number) -> Number:
    """The rounding error of ``plus(a, b)``, exactly."""
    total = a + b
    b_added = total - a
    a_added = total - b_added
    return (a - a_added) + (b - b_added)


@inlined()
def compensated(total: Number, lost: Number) -> Number:
    """The compensated sum; the total alone where nothing was lost, so that -0.0 stays, or where NaN was.

    The rounding error of an infinite total is NaN.
    """
    return total + lost if (lost < 0) | (lost > 0) else total


@inlined("contract")
def distance(x: Number, unit: Number, mean: Number) -> Number:
    """``x * unit - mean``, which ``reassoc`` would hoist out of a sum, to cancel there."""
    return x * unit - mean


@inlined("contract")
def times_plus(x: Number, scale: Number, bias: Number) -> Number:
    """``x * scale + bias``, where ``reassoc`` would multiply the factors of x first, which may overflow."""
    return x * scale + bias
