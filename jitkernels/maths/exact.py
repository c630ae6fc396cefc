"""Arithmetic whose order counts: no fast-math flag of a caller reaches it.

Rounding adds up with the number of additions one after another. So a long sum is cut into blocks, each added
up in many accumulators at once, and the blocks are joined with what each of these few additions lost (Knuth's
two-sum; Neumaier, ZAMM 1974). The error is that of one block, however many there are:

    lost += lost_in(total, part)
    total = plus(total, part)
    ...
    total = settled(total, lost)
"""

from typing import Any

from jitkernels.native.source import inlined


@inlined()
def plus(a: Any, b: Any) -> Any:
    """a + b"""
    return a + b


@inlined()
def times(a: Any, b: Any) -> Any:
    """a * b"""
    return a * b


@inlined()
def lost_in(a: Any, b: Any) -> Any:
    """What ``plus(a, b)`` rounded away, exactly."""
    total = a + b
    b_added = total - a
    a_added = total - b_added
    return (a - a_added) + (b - b_added)


@inlined()
def settled(total: Any, lost: Any) -> Any:
    """Their sum; the total alone where nothing was lost, so that a negative zero stays one, or where NaN was.

    Infinities have no difference: what they lost is NaN.
    """
    return total + lost if (lost < 0) | (lost > 0) else total


@inlined("contract")
def distance(x: Any, unit: Any, mean: Any) -> Any:
    """``x * unit - mean``, which ``reassoc`` would take out of a sum, to cancel there."""
    return x * unit - mean


@inlined("contract")
def times_plus(x: Any, scale: Any, bias: Any) -> Any:
    """``x * scale + bias``, where ``reassoc`` would multiply the factors of x first, which may overflow."""
    return x * scale + bias
