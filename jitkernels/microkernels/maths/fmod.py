"""fmod for float32 and float64: a minus the multiple of b nearest to it towards zero, exactly, with the sign of a.

The quotient n = rint(a / b) may be off by one, which leaves a multiple of the last place of b, at most b / 2 and a
little: a number, and so is the sum with b that corrects a negative remainder. float32 has n * b in float64 up to 2**28.
float64 takes b in two halves, so that n times either is exact, fused or not, up to 2**24; larger quotients are first
reduced by 2**24 * b, in float64 for both types. For n * b to be finite, the largest operands are halved.

Larger quotients are reduced digit by digit, in noinline code. The remainder of an infinity, or by zero, is NaN.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import cold, inlined, noinline
from jitkernels.microkernels.maths.formats import FloatFormat, for_both

BITS_26 = np.int64(-(2**27))  # mask of the exponent and the first 26 bits
MANY_32 = np.float64(2.0**28)
MANY_64 = np.float64(2.0**24)
VERY_MANY_64 = np.float64(2.0**48)
HUGE = np.float64(2.0**1022)
HALF = np.float64(0.5)
INFINITY = np.float64(float("inf"))
HIDDEN_BIT = np.int64(2**52)
MANTISSA = np.int64(2**52 - 1)


@noinline()
def far(a: Any, b: Any) -> Any:
    """fmod(a, b) for a > b >= 0: the mantissa of a modulo that of b, eleven more zeros behind it at a time."""
    if b == 0 or a == INFINITY:
        return a - a if a == INFINITY else b / b
    bits, divisor = a.view(np.int64), b.view(np.int64)
    steps = max(bits >> 52, 1) - max(divisor >> 52, 1)
    m = np.uint64(bits & MANTISSA | (HIDDEN_BIT if bits >= HIDDEN_BIT else 0))
    of = np.uint64(divisor & MANTISSA | (HIDDEN_BIT if divisor >= HIDDEN_BIT else 0))
    m = m % of
    while steps > 0 and m > 0:
        step = min(steps, 11)
        m = (m << np.uint64(step)) % of
        steps -= step
    # The unit of m is that of b, at least 2**-1074.
    exponent = max(divisor >> 52, 1) - 1
    rest = m.view(np.float64)
    while exponent > 0:
        step = min(exponent, 1000)
        rest = rest * ((step + 1023) << 52).view(np.float64)
        exponent -= step
    return rest


@inlined()
def near(a: Any, b: Any, quotient: Any) -> Any:
    """fmod(a, b) for a, b >= 0 with a quotient of at most 2**24."""
    n = np.rint(quotient)
    upper = (b.view(np.int64) & BITS_26).view(np.float64)
    rest = (a - n * upper) - n * (b - upper)
    return rest + (b if rest < 0 else 0)


@inlined()
def positive_float64(a: Any, b: Any) -> Any:
    """fmod(a, b) for a, b >= 0 and NaN."""
    half_a, half_b = (a * HALF, b * HALF) if a >= HUGE else (a, b)
    quotient = half_a / half_b
    remainder = near(half_a, half_b, quotient)
    if quotient >= MANY_64:
        many = half_b * MANY_64
        rest = near(half_a, many, half_a / many)
        remainder = near(rest, half_b, rest / half_b)
    remainder = remainder + remainder if a >= HUGE else remainder
    if quotient >= VERY_MANY_64:
        remainder = far(a, b)
    return a if a < b else remainder


@cold()
def beyond_float32(a: Any, b: Any) -> Any:
    """fmod(a, b) for numbers of float32 with quotients of 2**28 and more."""
    return positive_float64(a, b)


@inlined()
def positive_float32(a: Any, b: Any) -> Any:
    """fmod(a, b) for a, b >= 0 and NaN."""
    wide, by = np.float64(a), np.float64(b)
    quotient = wide / by
    rest = wide - np.rint(quotient) * by
    rest = rest + by if rest < 0 else rest
    if quotient >= MANY_32:
        rest = beyond_float32(wide, by)
    return a if a < b else np.float32(rest)


def _fmod(form: FloatFormat, positive: Any) -> Any:
    @inlined()
    def fmod(a: Any, b: Any) -> Any:
        """Compute fmod of every a and b."""
        return np.copysign(positive(abs(a), abs(b)), a)

    return fmod


fmod_float32, fmod_float64 = for_both(_fmod, (positive_float32, positive_float64))
