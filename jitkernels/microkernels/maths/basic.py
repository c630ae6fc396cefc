"""Elementwise operations of a few instructions, with NumPy's semantics: scalar code for any element type.

A type has its own functions only where NumPy gives it a meaning of its own: sums of bools are ``or``, remainders of
floats have signs of zeros to keep. A NaN in either operand of `maximum` and `minimum` is the result.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, instruction, noinline

INFINITY = float("inf")


@inlined("contract")
def add(a: Any, b: Any) -> Any:
    return a + b


@inlined("contract")
def subtract(a: Any, b: Any) -> Any:
    return a - b


@inlined("contract")
def multiply(a: Any, b: Any) -> Any:
    return a * b


@inlined()
def divide(a: Any, b: Any) -> Any:
    """The value of ``a / b`` of floats."""
    return a / b


@inlined()
def either(a: Any, b: Any) -> Any:
    return a | b


@inlined()
def both(a: Any, b: Any) -> Any:
    return a & b


@inlined()
def differing(a: Any, b: Any) -> Any:
    return a ^ b


@inlined()
def inverted(a: Any) -> Any:
    return ~a


@noinline()
def inverse(b: Any) -> np.float64:
    """1 / b, which sets the division flag where b is 0, as integer divisions do not."""
    return 1.0 / np.float64(b)


@inlined()
def floor_quotient(a: Any, b: Any) -> Any:
    """The value of ``a // b`` of unsigned integers; 0 where b is 0."""
    quotient = a // b
    if b == 0:
        quotient = quotient if inverse(b) > 1.0 else b
    return quotient


@inlined()
def floor_quotient_of_signed(a: Any, b: Any) -> Any:
    """The value of ``a // b`` of signed integers; 0 where b is 0, and a where -a overflows."""
    quotient = a // b
    if (b == 0) | ((b == -1) & (quotient == a) & (a != 0)):
        quotient = quotient if inverse(b * (b + 1)) > 1.0 else b
    return quotient


@inlined()
def floor_remainder(a: Any, b: Any) -> Any:
    """The value of ``a % b`` of integers, with the sign of b; 0 where b is 0."""
    remainder = a % b
    if b == 0:
        remainder = remainder if inverse(b) > 1.0 else b
    return remainder


@inlined()
def left_shift(a: Any, b: Any) -> Any:
    """The value of ``a << b``; 0 where b is out of range."""
    return a << b


@inlined()
def right_shift(a: Any, b: Any) -> Any:
    """The value of ``a >> b``; the sign alone where b is out of range."""
    return a >> b


@inlined("contract")
def negative(a: Any) -> Any:
    return -a


@inlined()
def positive(a: Any) -> Any:
    return a


@inlined()
def absolute(a: Any) -> Any:
    """The value of ``abs(a)``."""
    return abs(a)


@inlined("contract")
def square(a: Any) -> Any:
    return a * a


@inlined()
def reciprocal(a: Any) -> Any:
    """The value of ``1 / a`` of floats."""
    return 1 / a


@inlined()
def whole_reciprocal(a: Any) -> Any:
    """The value of ``1 / a`` of integers, computed as a float and cast; the result of 1 / 0 is the machine's."""
    return 1 / np.float64(a)


@inlined()
def square_root(a: Any) -> Any:
    """The value of ``sqrt(a)``."""
    return np.sqrt(a)


@inlined()
def floor(a: Any) -> Any:
    return np.floor(a)


@inlined()
def ceil(a: Any) -> Any:
    return np.ceil(a)


@inlined()
def trunc(a: Any) -> Any:
    return np.trunc(a)


@inlined()
def rint(a: Any) -> Any:
    """The value of a rounded to the nearest integer, ties to even."""
    return np.rint(a)


@inlined()
def copysign(a: Any, b: Any) -> Any:
    """The value of a with the sign of b."""
    return np.copysign(a, b)


@inlined()
def signbit(a: Any) -> Any:
    """Whether the sign is that of negative numbers"""
    return np.copysign(1, a) < 0


@inlined()
def heaviside(a: Any, b: Any) -> Any:
    """0 below zero, 1 above, b at zero"""
    return b if a == 0 else a if a != a else np.copysign(0.5, a) + 0.5


@inlined()
def sign(a: Any) -> Any:
    """-1, 0 or 1; NaN of NaN"""
    return a + 0 if (a == 0) | (a != a) else np.copysign(1, a)


@inlined()
def sign_of_integer(a: Any) -> Any:
    """-1, 0 or 1"""
    return (a > 0) * (a - a + 1) - (a < 0) * (a - a + 1)


@inlined()
def equal(a: Any, b: Any) -> Any:
    return a == b


@inlined()
def not_equal(a: Any, b: Any) -> Any:
    return a != b


@inlined()
def less(a: Any, b: Any) -> Any:
    return a < b


@inlined()
def less_equal(a: Any, b: Any) -> Any:
    return a <= b


@inlined()
def greater(a: Any, b: Any) -> Any:
    return a > b


@inlined()
def greater_equal(a: Any, b: Any) -> Any:
    return a >= b


@instruction("maximum")
@inlined("nsz")
def larger_or_nan(a: Any, b: Any) -> Any:
    """The larger operand, NaN where either is."""
    larger = a if a > b else b  # which returns b where either is NaN
    return a if a != a else larger


@inlined("nsz")
def maximum(a: Any, b: Any) -> Any:
    """The larger operand, NaN where either is."""
    return larger_or_nan(a, b)


@instruction("minimum")
@inlined("nsz")
def smaller_or_nan(a: Any, b: Any) -> Any:
    """The smaller operand, NaN where either is."""
    smaller = a if a < b else b  # which returns b where either is NaN
    return a if a != a else smaller


@inlined("nsz")
def minimum(a: Any, b: Any) -> Any:
    """The smaller operand, NaN where either is."""
    return smaller_or_nan(a, b)


@inlined()
def fmax(a: Any, b: Any) -> Any:
    """The larger operand, or the other one where one is NaN."""
    larger = a if a > b else b
    return a if b != b else larger


@inlined()
def fmin(a: Any, b: Any) -> Any:
    """The smaller operand, or the other one where one is NaN."""
    smaller = a if a < b else b
    return a if b != b else smaller


@inlined()
def larger_integer(a: Any, b: Any) -> Any:
    """The larger of two integers."""
    return a if a > b else b


@inlined()
def smaller_integer(a: Any, b: Any) -> Any:
    """The smaller of two integers."""
    return a if a < b else b


@inlined()
def choose(condition: Any, a: Any, b: Any) -> Any:
    """The value of a where the condition holds, else b."""
    return a if condition else b


@inlined()
def is_nan(a: Any) -> Any:
    return a != a


@inlined()
def is_infinite(a: Any) -> Any:
    """Whether a float is an infinity; the comparison sets no flag, which a difference of infinities would."""
    return abs(a) == INFINITY


@inlined()
def is_finite(a: Any) -> Any:
    """Whether a float is neither infinite nor NaN"""
    return (a == a) & (abs(a) != INFINITY)


@inlined()
def never(a: Any) -> Any:
    """`isinf` of integers: always false."""
    return a != a


@inlined()
def always(a: Any) -> Any:
    """`isfinite` of integers: always true."""
    return a == a


@inlined()
def truth(a: Any) -> Any:
    """Whether a is not zero"""
    return a != 0


@inlined()
def logical_and(a: Any, b: Any) -> Any:
    """Whether neither is zero"""
    return (a != 0) & (b != 0)


@inlined()
def logical_or(a: Any, b: Any) -> Any:
    """Whether one is not zero"""
    return (a != 0) | (b != 0)


@inlined()
def logical_xor(a: Any, b: Any) -> Any:
    """Whether one is zero and the other is not"""
    return (a != 0) ^ (b != 0)


@inlined()
def logical_not(a: Any) -> Any:
    """Whether a is zero"""
    return a == 0
