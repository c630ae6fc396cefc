"""What becomes of quotients of integers that are found without a division, and what it takes to find them.

As NumPy has it, quotients by 0 are 0, and so are remainders; the smallest integer by -1 is itself. Both set the flag of
the processor that divisions of floats by 0 set.
"""

from typing import Any

import numpy as np

from jitkernels.maths.basic import inverse
from jitkernels.native.source import inlined

LOW = np.uint64(0xFFFFFFFF)


@inlined()
def quotient(found: Any, a: Any, b: Any) -> Any:
    """The value of ``a // b`` of integers without a sign, found unless b is 0."""
    if b == 0:
        found = b if inverse(b) > 1.0 else found
    return found


@inlined()
def quotient_of_signed(found: Any, a: Any, b: Any) -> Any:
    """The value of ``a // b`` of integers, found unless b is 0."""
    if (b == 0) | (b == -1):
        fails = (b == 0) | ((found == a) & (a != 0))
        if fails:
            found = a * b if inverse(b * (b + 1)) > 1.0 else found
    return found


@inlined()
def remainder(found: Any, a: Any, b: Any) -> Any:
    """The value of ``a % b`` of integers by the quotient, with the sign of b."""
    rest = a - found * b
    if b == 0:
        rest = b if inverse(b) > 1.0 else rest
    return rest


@inlined()
def rest_of_signed(found: Any, a: Any, b: Any) -> Any:
    """The remainder as in C by the quotient rounded down, with the sign of a."""
    rest = remainder(found, a, b)
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


@inlined()
def high_half(a: Any, b: Any) -> Any:
    """The high 64 bits of a product of 64-bit numbers without a sign."""
    a_low, a_high, b_low, b_high = a & LOW, a >> 32, b & LOW, b >> 32
    middle = a_low * b_high + (a_low * b_low >> 32)
    other = a_high * b_low + (middle & LOW)
    return a_high * b_high + (middle >> 32) + (other >> 32)


@inlined()
def less_by(found: Any, left: Any, d: Any) -> Any:
    """1 where a digit of a quotient was guessed too large, going by what it leaves of the first digits; else 0."""
    is_more = (left <= LOW) & ((found > LOW) | (found * (d & LOW) > left << 32))
    return np.uint64(1) if is_more else np.uint64(0)


@inlined()
def next_digit(rest: Any, d: Any) -> Any:
    """The value of ``rest * 2**32 // d`` where rest < d, which has its first bit set (Knuth, 4.3.1, algorithm D)."""
    high = d >> 32
    found = rest // high
    left = rest - found * high
    less = less_by(found, left, d)
    found, left = found - less, left + less * high
    return found - less_by(found, left, d)


@inlined()
def next_digits(rest: Any, d: Any) -> Any:
    """The value of ``rest * 2**64 // d`` where rest < d, which has its first bit set, of numbers of 64 bits."""
    first = next_digit(rest, d)
    second = next_digit((rest << 32) - first * d, d)
    return (first << 32) + second
