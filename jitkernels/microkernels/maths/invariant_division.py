"""Integer division by a loop-invariant divisor: corrections of a quotient computed by multiplication, and its digits.

As in NumPy, quotients and remainders by 0 are 0, and the smallest integer by -1 is itself. Both set the divide-by-zero
flag of the processor.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.basic import inverse

LOW = np.uint64(0xFFFFFFFF)


@inlined()
def quotient(computed: Any, a: Any, b: Any) -> Any:
    """``a // b`` of unsigned integers, from the computed quotient, with NumPy's result where b is 0."""
    if b == 0:
        computed = b if inverse(b) > 1.0 else computed
    return computed


@inlined()
def quotient_of_signed(computed: Any, a: Any, b: Any) -> Any:
    """``a // b`` of signed integers, from the computed quotient, with NumPy's result where b is 0."""
    if (b == 0) | (b == -1):
        fails = (b == 0) | ((computed == a) & (a != 0))
        if fails:
            computed = a * b if inverse(b * (b + 1)) > 1.0 else computed
    return computed


@inlined()
def remainder(computed: Any, a: Any, b: Any) -> Any:
    """``a % b`` of integers from the quotient, with the sign of b."""
    rest = a - computed * b
    if b == 0:
        rest = b if inverse(b) > 1.0 else rest
    return rest


@inlined()
def rest_of_signed(computed: Any, a: Any, b: Any) -> Any:
    """The C remainder from the quotient rounded down, with the sign of a."""
    rest = remainder(computed, a, b)
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


@inlined()
def high_half(a: Any, b: Any) -> Any:
    """The high 64 bits of a product of unsigned 64-bit numbers."""
    a_low, a_high, b_low, b_high = a & LOW, a >> 32, b & LOW, b >> 32
    middle = a_low * b_high + (a_low * b_low >> 32)
    cross = a_high * b_low + (middle & LOW)
    return a_high * b_high + (middle >> 32) + (cross >> 32)


@inlined()
def less_by(guess: Any, left: Any, d: Any) -> Any:
    """1 where a guessed digit of a quotient is too large, by the remainder of the first digits; else 0."""
    is_more = (left <= LOW) & ((guess > LOW) | (guess * (d & LOW) > left << 32))
    return np.uint64(1) if is_more else np.uint64(0)


@inlined()
def next_digit(rest: Any, d: Any) -> Any:
    """The value of ``rest * 2**32 // d`` where rest < d, whose top bit is set (Knuth, 4.3.1, algorithm D)."""
    high = d >> 32
    guess = rest // high
    left = rest - guess * high
    less = less_by(guess, left, d)
    guess, left = guess - less, left + less * high
    return guess - less_by(guess, left, d)


@inlined()
def next_digits(rest: Any, d: Any) -> Any:
    """The value of ``rest * 2**64 // d`` where rest < d, whose top bit is set, of 64-bit numbers."""
    first = next_digit(rest, d)
    second = next_digit((rest << 32) - first * d, d)
    return (first << 32) + second
