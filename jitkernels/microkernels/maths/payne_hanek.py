"""Payne-Hanek reduction of arguments too large for `quarter_turns`: products with the relevant digits of 2 / pi.

Of the digits of 2 / pi, those that contribute multiples of four turns for every number of a magnitude are left out, and
the number is multiplied by as many of the next ones as its least distance to a multiple of pi/2 requires (Payne &
Hanek, "Radian reduction for trigonometric functions", 1983). Magnitudes come in steps of 2**32, or 2**24 of float32,
each with digits of its own, as a few floats. Products are exact, in parts, so that whole turns can be subtracted from
each. All lanes share one path.
"""

import numpy as np

from jitkernels.codegen.source_protocol import Table, cold
from jitkernels.microkernels.maths.strict_arithmetic import times_plus_float64, two_sum_error

DIGITS = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BAB",
    16,
)
"""Digits of 2 / pi behind the binary point, as one integer."""
TWO_OVER_PI_BITS = 1216


def parts_of(scale: int, top: int, widths: tuple[int, ...]) -> tuple[np.float64, ...]:
    """Cut the digits of 2 / pi * 2**scale below 2**top into floats of so many bits."""
    parts, below = [], top
    for width in widths:
        below -= width
        digits = DIGITS >> TWO_OVER_PI_BITS - scale + below & (1 << width) - 1
        parts.append(np.float64(digits * 2.0**below))
    return tuple(parts)


MAGIC = np.float64(1.5 * 2.0**52)
HALF_PI = np.float64(1.5707963267948966)
HALF_PI_LOW = np.float64(6.123233995736766e-17)

# float64: the first six bits of the biased exponent (32 * i to 32 * i + 31) select the digits, and the others remain.
FOUR, QUARTER = np.float64(4), np.float64(0.25)
LATTER = np.int64(2**57 - 1)
SMALLEST = np.int64(1024 << 52)  # the bits of 2.0
ROWS = Table(tuple(parts_of(32 * i - 1024, 53, (53, 53, 53, 53)) for i in range(32, 64)))

# float32: products of 24 bits with 29 are exact. Digits are those for 2**start and the next 22 powers.
STARTS = 17, 40, 62, 84, 106
FROM_2, FROM_3, FROM_4, FROM_5 = (np.float64(2.0**start) for start in STARTS[1:])
(A1, B1, C1), (A2, B2, C2), (A3, B3, C3), (A4, B4, C4), (A5, B5, C5) = (
    tuple(part * np.float64(2.0**-start) for part in parts_of(start, 25, (29, 29, 53))) for start in STARTS
)


@cold()
def far_quarter_turns_float32(size: np.float64) -> tuple[np.int32, np.float32, np.float32]:
    """As `quarter_turns_float32`, for a float32 of 2**17 or more converted to float64, and for infinity."""
    in_1, in_2, in_3, in_4 = size < FROM_2, size < FROM_3, size < FROM_4, size < FROM_5
    first = A1 if in_1 else A2 if in_2 else A3 if in_3 else A4 if in_4 else A5
    second = B1 if in_1 else B2 if in_2 else B3 if in_3 else B4 if in_4 else B5
    third = C1 if in_1 else C2 if in_2 else C3 if in_3 else C4 if in_4 else C5
    high, low = size * first, size * second
    shifted = high + low + MAGIC
    left = ((high - (shifted - MAGIC)) + low) + size * third
    whole = left * HALF_PI
    r = np.float32(whole)
    return np.int32(shifted.view(np.int64)), r, np.float32(whole - np.float64(r))


@cold()
def far_quarter_turns_float64(size: np.float64) -> tuple[np.int64, np.float64, np.float64]:
    """As `quarter_turns_float64`, for 2**17 <= size, and NaN for infinity."""
    bits = size.view(np.int64)
    x = ((bits & LATTER) + SMALLEST).view(np.float64)
    first, second, third, fourth = ROWS[bits >> 57]
    # At most 2**86; where the last place exceeds a turn, only whole multiples of four turns are left out.
    one = x * first
    one_lost = times_plus_float64(x, first, -one)
    other = x * second
    other_lost = times_plus_float64(x, second, -other)
    one_left = (one - FOUR * np.rint(one * QUARTER)) + (one_lost - FOUR * np.rint(one_lost * QUARTER))
    one_shifted, other_shifted = one_left + MAGIC, other + MAGIC
    one_left -= one_shifted - MAGIC
    other_left = other - (other_shifted - MAGIC)
    shifted = one_left + other_left + MAGIC
    one_left -= shifted - MAGIC
    k = one_shifted.view(np.int64) + other_shifted.view(np.int64) + shifted.view(np.int64)
    # The remainder of the large ones, then its rounding error where they cancel, and the rounding errors of all.
    large, large_lost = one_left + other_left, two_sum_error(one_left, other_left)
    product = x * third
    small, small_lost = other_lost + product, two_sum_error(other_lost, product)
    high = large + small
    low = two_sum_error(large, small) + (
        large_lost + small_lost + (times_plus_float64(x, third, -product) + x * fourth)
    )
    r = high * HALF_PI
    rest = times_plus_float64(high, HALF_PI, -r) + (high * HALF_PI_LOW + low * HALF_PI)
    return k, r + (size - size), rest
