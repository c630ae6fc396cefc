"""Integer functions with NumPy's semantics: gcd, lcm, powers, C remainders, population counts.

Functions whose trip count depends on the data are noinline and run element by element.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import high_product, inlined, noinline
from jitkernels.microkernels.maths.basic import floor_remainder

PAIRS = np.uint64(0x5555555555555555)
FOURS = np.uint64(0x3333333333333333)
EIGHTS = np.uint64(0x0F0F0F0F0F0F0F0F)
ONES = np.uint64(0x0101010101010101)


@inlined()
def multiply_high(a: Any, b: Any) -> Any:
    """The upper half of a product of unsigned numbers."""
    return high_product(a, b)


@noinline()
def common_divisor(a: Any, b: Any) -> Any:
    """The greatest common divisor of unsigned numbers; 0 of zeros."""
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


@inlined()
def gcd_of_numbers(a: Any, b: Any) -> Any:
    """The greatest common divisor of unsigned numbers."""
    return common_divisor(np.uint64(a), np.uint64(b))


@inlined()
def gcd(a: Any, b: Any) -> Any:
    """The greatest common divisor. For the smallest integer and 0 it wraps."""
    return common_divisor(np.uint64(abs(np.int64(a))), np.uint64(abs(np.int64(b))))


@inlined()
def lcm_of_numbers(a: Any, b: Any) -> Any:
    """The least common multiple of unsigned numbers, which wraps; 0 where either is 0."""
    return np.uint64(a) // gcd_of_numbers(a, b) * np.uint64(b)


@inlined()
def lcm(a: Any, b: Any) -> Any:
    """The least common multiple, which wraps; 0 where either is 0."""
    return np.uint64(abs(np.int64(a))) // gcd(a, b) * np.uint64(abs(np.int64(b)))


@noinline()
def power_times(start: Any, a: Any, b: Any) -> Any:
    """`start` times a to the power of b >= 0, which wraps."""
    while b > 0:
        start = start * a if b & 1 != 0 else start
        a = a * a
        b = b >> 1
    return start


@inlined()
def power(a: Any, b: Any) -> Any:
    """a to the power of b >= 0, which wraps: exponents of more than six bits take a loop per element."""
    result = a - a + 1
    for _digit in range(6):
        result = result * a if b & 1 != 0 else result
        a = a * a
        b = b >> 1
    if b > 0:
        result = power_times(result, a, b)
    return result


@inlined()
def fmod(a: Any, b: Any) -> Any:
    """The remainder with the sign of a; 0 where b is 0."""
    rest = floor_remainder(a, b)
    return rest - b if (rest != 0) & ((a < 0) != (b < 0)) else rest


@inlined()
def bits_of(x: np.uint64) -> np.uint8:
    """The number of set bits."""
    x = x - (x >> 1 & PAIRS)
    x = (x & FOURS) + (x >> 2 & FOURS)
    x = (x + (x >> 4)) & EIGHTS
    return np.uint8(x * ONES >> 56)


@inlined()
def bits_of_size(a: Any) -> np.uint8:
    """The number of set bits of the absolute value."""
    return bits_of(np.uint64(abs(np.int64(a))))


@inlined()
def bits_of_number(a: Any) -> np.uint8:
    """The number of set bits."""
    return bits_of(np.uint64(a))
