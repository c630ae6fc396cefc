"""Functions of integers alone, as NumPy has them: common divisors, powers, remainders as in C, numbers of bits.

What takes a loop of its own length for each number stands apart and runs number by number.
"""

from typing import Any

import numpy as np

from jitkernels.maths.basic import floor_remainder
from jitkernels.native.source import apart, inlined

PAIRS = np.uint64(0x5555555555555555)
FOURS = np.uint64(0x3333333333333333)
EIGHTS = np.uint64(0x0F0F0F0F0F0F0F0F)
ONES = np.uint64(0x0101010101010101)


@apart()
def common_divisor(a: Any, b: Any) -> Any:
    """The greatest common divisor of numbers without a sign; 0 of zeros."""
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


@inlined()
def gcd_of_numbers(a: Any, b: Any) -> Any:
    """The greatest common divisor of numbers without a sign."""
    return common_divisor(np.uint64(a), np.uint64(b))


@inlined()
def gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor. Of the smallest integer and 0 it wraps."""
    return common_divisor(np.uint64(abs(np.int64(a))), np.uint64(abs(np.int64(b))))


@inlined()
def lcm_of_numbers(a: Any, b: Any) -> Any:
    """The least common multiple of numbers without a sign, which wraps; 0 where either is 0."""
    return np.uint64(a) // gcd_of_numbers(a, b) * np.uint64(b)


@inlined()
def lcm(a: Any, b: Any) -> Any:
    """The least common multiple, which wraps; 0 where either is 0."""
    return np.uint64(abs(np.int64(a))) // gcd(a, b) * np.uint64(abs(np.int64(b)))


@apart()
def power_times(found: Any, a: Any, b: Any) -> Any:
    """A number times a to the power of b >= 0, which wraps."""
    while b > 0:
        found = found * a if b & 1 != 0 else found
        a = a * a
        b = b >> 1
    return found


@inlined()
def power(a: Any, b: Any) -> Any:
    """a to the power of b >= 0, which wraps: what exponents have beyond six digits goes number by number."""
    found = a - a + 1
    for _digit in range(6):
        found = found * a if b & 1 != 0 else found
        a = a * a
        b = b >> 1
    if b > 0:
        found = power_times(found, a, b)
    return found


@inlined()
def fmod(a: Any, b: Any) -> Any:
    """The remainder with the sign of a; 0 where b is 0."""
    rest = floor_remainder(a, b)
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


@inlined()
def bits_of(x: np.uint64) -> np.uint8:
    """How many bits are set."""
    x = x - (x >> 1 & PAIRS)
    x = (x & FOURS) + (x >> 2 & FOURS)
    x = (x + (x >> 4)) & EIGHTS
    return np.uint8(x * ONES >> 56)


@inlined()
def bits_of_size(a: Any) -> np.uint8:
    """How many bits of the size are set."""
    return bits_of(np.uint64(abs(np.int64(a))))


@inlined()
def bits_of_number(a: Any) -> np.uint8:
    """How many bits are set."""
    return bits_of(np.uint64(a))
