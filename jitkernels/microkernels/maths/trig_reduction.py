"""Argument reduction of sin, cos and tan by quarter turns (Cody-Waite).

k = rint(size / (pi/2)), and the remainder r = size - k * pi/2 in [-pi/4, pi/4]. pi/2 is taken in three parts (Cody &
Waite, "Software Manual for the Elementary Functions", 1980). The first has all the bits of the type: its remainder is a
multiple of its last place, and less than 1, so that an FMA computes it exactly. The second one has so few bits that k
times them is exact, fused or not. The correction of r, the last part and the rounding errors, is returned as its
`rest`: at most a quarter of r where r is next to nothing, so that only the linear term needs it.

k < 2**10 so in float32, and k < 2**22 in float64, of which no number in reach is nearer than 2**-60 to a multiple of
pi/2. In float32, k < 2**17 takes a second part of all bits, and the rounding error of its product. Larger arguments are
rare; see `far_quarter_turns`.

Adding `MAGIC` = 1.5 * 2**(mantissa bits) rounds to an integer, and leaves it in the low bits of the sum.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.payne_hanek import far_quarter_turns_float32, far_quarter_turns_float64
from jitkernels.microkernels.maths.strict_arithmetic import times_plus_float32, times_plus_float64

TURNS_32 = np.float32(0.63661975)  # 2 / pi
TURNS_LOW_32 = np.float32(2.5682553e-08)
MAGIC_32 = np.float32(1.5 * 2.0**23)
FIRST_32 = np.float32(1.5707964)
SECOND_32 = np.float32(-4.3710315e-08)  # 14 bits
THIRD_32 = np.float32(-1.0746346e-12)
MANY_32 = np.float32(2.0**10 * 1.57)
SECOND_OF_MANY_32 = np.float32(-4.371139e-08)
THIRD_OF_MANY_32 = np.float32(-1.7151245e-15)
FAR_32 = np.float32(2.0**17 * 1.57)

TURNS_64 = np.float64(0.6366197723675814)
MAGIC_64 = np.float64(1.5 * 2.0**52)
FIRST_64 = np.float64(1.5707963267948966)
SECOND_64 = np.float64(6.12323399409214e-17)  # 31 bits
THIRD_64 = np.float64(1.6446256936324258e-26)
FAR_64 = np.float64(2.0**22 * 1.57)


@inlined("contract")
def few_quarter_turns_float32(size: np.float32) -> tuple[np.int32, np.float32, np.float32]:
    """As `quarter_turns_float32`, for less than 2**10 turns."""
    shifted = size * TURNS_32 + MAGIC_32
    turns = shifted - MAGIC_32
    near = times_plus_float32(-turns, FIRST_32, size)
    r = near - turns * SECOND_32
    rest = (near - r) - turns * SECOND_32 - turns * THIRD_32
    return shifted.view(np.int32), r, rest


@inlined()
def many_quarter_turns_float32(size: np.float32, k: np.int32) -> tuple[np.float32, np.float32]:
    """r and its rest, for less than 2**17 turns."""
    turns = k.view(np.float32) - MAGIC_32
    near = times_plus_float32(-turns, FIRST_32, size)
    product = turns * SECOND_OF_MANY_32
    lost = times_plus_float32(turns, SECOND_OF_MANY_32, -product)
    r = near - product
    return r, ((near - r) - product) - times_plus_float32(turns, THIRD_OF_MANY_32, lost)


@inlined()
def quarter_turns_float32(size: np.float32) -> tuple[np.int32, np.float32, np.float32]:
    """k in the low bits of an integer, r and its rest, for size >= 0 and NaN; r may be 0.6 % more than pi/4."""
    k, r, rest = few_quarter_turns_float32(size)
    if size >= MANY_32:
        r, rest = many_quarter_turns_float32(size, k)
        if size >= FAR_32:
            k, r, rest = far_quarter_turns_float32(np.float64(size))
    return k, r, rest


@inlined()
def even_quarter_turns_float32(size: np.float32) -> tuple[np.int32, np.float32, np.float32]:
    """As `quarter_turns_float32`; where r may exceed pi/4, k is even: the quotient is rounded twice, ties to even."""
    k, r, rest = few_quarter_turns_float32(size)
    if size >= MANY_32:
        k = (times_plus_float32(size, TURNS_32, size * TURNS_LOW_32) + MAGIC_32).view(np.int32)
        r, rest = many_quarter_turns_float32(size, k)
        if size >= FAR_32:
            k, r, rest = far_quarter_turns_float32(np.float64(size))
    return k, r, rest


@inlined("contract")
def quarter_turns_float64(size: np.float64) -> tuple[np.int64, np.float64, np.float64]:
    """k in the low bits of an integer, r and its rest, for size >= 0 and NaN."""
    shifted = size * TURNS_64 + MAGIC_64
    turns = shifted - MAGIC_64
    k = shifted.view(np.int64)
    near = times_plus_float64(-turns, FIRST_64, size)
    r = near - turns * SECOND_64
    rest = (near - r) - turns * SECOND_64 - turns * THIRD_64
    if size >= FAR_64:
        k, r, rest = far_quarter_turns_float64(size)
    return k, r, rest


QUARTER_TURNS = quarter_turns_float32, quarter_turns_float64
