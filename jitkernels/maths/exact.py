"""Arithmetic whose order counts: no fast-math flag of a caller reaches it.

Rounding adds up with the number of additions one after another. So a long sum is cut into blocks, each added
up in many accumulators at once, and the blocks are joined with what each of these few additions lost (Knuth's
two-sum; Neumaier, ZAMM 1974). The error is that of one block, however many there are:

    lost += lost_in(total, part)
    total = plus(total, part)
    ...
    total = settled(total, lost)
"""

from typing import TypeVar

import numpy as np

from jitkernels.native.source import inlined

Number = TypeVar("Number", np.float32, np.float64)


@inlined()
def plus(a: Number, b: Number) -> Number:
    """a + b"""
    return a + b


@inlined()
def times(a: Number, b: Number) -> Number:
    """a * b"""
    return a * b


@inlined()
def lost_in(a: Number, b: Number) -> Number:
    """What ``plus(a, b)`` rounded away, exactly."""
    total = a + b
    b_added = total - a
    a_added = total - b_added
    return (a - a_added) + (b - b_added)


@inlined()
def settled(total: Number, lost: Number) -> Number:
    """Their sum; the total alone where nothing was lost, so that a negative zero stays one, or where NaN was.

    Infinities have no difference: what they lost is NaN.
    """
    return total + lost if (lost < 0) | (lost > 0) else total


@inlined("contract")
def distance(x: Number, unit: Number, mean: Number) -> Number:
    """``x * unit - mean``, which ``reassoc`` would take out of a sum, to cancel there."""
    return x * unit - mean


@inlined("contract")
def times_plus(x: Number, scale: Number, bias: Number) -> Number:
    """``x * scale + bias``, where ``reassoc`` would multiply the factors of x first, which may overflow."""
    return x * scale + bias
