"""What is left of arguments too large for `quarter_turns`: all of 2 / pi that matters, times the argument, in integers.

A float64 is m * 2**e. Of the digits of 2 / pi those that make multiples of four turns of m * 2**e are left out, and
m is multiplied by the next 192 bits, modulo 2**192 (Payne & Hanek, "Radian reduction for trigonometric functions",
1983). The product begins with the two bits of the quadrant, and the next 126 are right. No float64 is nearer than
2**-61 quarter turns to a multiple of them, so 65 bits count in the worst case.

Rare, and slow beside anything else here: it stands apart and runs number by number.
"""

import numpy as np

from jitkernels.native.source import apart, inlined

# The digits of 2 / pi in words of 64 bits, from the point on.
W1 = np.uint64(0xA2F9836E4E441529)
W2 = np.uint64(0xFC2757D1F534DDC0)
W3 = np.uint64(0xDB6295993C439041)
W4 = np.uint64(0xFE5163ABDEBBC561)
W5 = np.uint64(0xB7246E3A424DD2E0)
W6 = np.uint64(0x06492EEA09D1921C)
W7 = np.uint64(0xFE1DEB1CB129A73E)
W8 = np.uint64(0xE88235F52EBB4484)
W9 = np.uint64(0xE99C7026B45F7E41)
W10 = np.uint64(0x3991D639835339F4)
W11 = np.uint64(0x9C845F8BBDF9283B)
W12 = np.uint64(0x1FF897FFDE05980F)
W13 = np.uint64(0xEF2F118B5A0A6D1F)
W14 = np.uint64(0x6D367ECF27CB09B7)
W15 = np.uint64(0x4F463F669E5FEA2D)
W16 = np.uint64(0x7527BAC7EBE5F17B)
W17 = np.uint64(0x3D0739F78A5292EA)
W18 = np.uint64(0x6BFB5FB11F8D5D08)
W19 = np.uint64(0x56033046FC7B6BAB)
BEFORE = 62
"""The place, from a word of zeros on, of the digit that makes 2 of 2**0."""

LOW_32 = np.uint64(2**32 - 1)
MANTISSA = np.int64(2**52 - 1)
HIDDEN_BIT = np.int64(2**52)
BITS_26 = np.int64(-(2**27))  # mask of the sign, the exponent and the first 26 bits
UNIT_32 = np.float64(2.0**-32)
UNIT_64 = np.float64(2.0**-64)
UNIT_117 = np.float64(2.0**-117)
HALF_PI = np.float64(1.5707963267948966)
HALF_PI_HIGH = np.float64(1.5707963407039642)  # of 26 bits
HALF_PI_LOW = np.float64(-1.3909067614167116e-08)


@apart()
def digits(i: np.int64) -> np.uint64:
    """A word of 2 / pi, from one of zeros on. The language has no tables; LLVM makes one of this."""
    return (
        np.uint64(0) if i == 0 else
        W1 if i == 1 else W2 if i == 2 else W3 if i == 3 else W4 if i == 4 else W5 if i == 5 else
        W6 if i == 6 else W7 if i == 7 else W8 if i == 8 else W9 if i == 9 else W10 if i == 10 else
        W11 if i == 11 else W12 if i == 12 else W13 if i == 13 else W14 if i == 14 else W15 if i == 15 else
        W16 if i == 16 else W17 if i == 17 else W18 if i == 18 else W19
    )  # fmt: skip


@inlined()
def window(place: np.int64) -> np.uint64:
    """The 64 digits from a place on."""
    word, skipped = place >> 6, np.uint64(place & 63)
    return digits(word) << skipped | digits(word + 1) >> 64 - skipped


@inlined()
def high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper half of the 128 bits of a * b."""
    a_low, a_high, b_low, b_high = a & LOW_32, a >> 32, b & LOW_32, b >> 32
    one = a_high * b_low + (a_low * b_low >> 32)
    other = a_low * b_high + (one & LOW_32)
    return a_high * b_high + (one >> 32) + (other >> 32)


@apart()
def far_quarter_turns(size: np.float64) -> tuple[np.int64, np.float64, np.float64]:
    """As `quarter_turns`, for 1 <= size and infinity, of which nothing is left but NaN."""
    bits = size.view(np.int64)
    m = np.uint64(bits & MANTISSA | HIDDEN_BIT)
    place = (bits >> 52) - 1075 + BEFORE
    first, second, third = window(place), window(place + 64), window(place + 128)
    low = m * second
    product_low = low + high_product(m, third)
    carry = 1 if product_low < low else 0
    product_high = m * first + high_product(m, second) + np.uint64(carry)
    # The turn from -1/2 to 1/2, in units of 2**-64, and what is behind it.
    turn = product_high << 2 | product_low >> 62
    k = np.int64((product_high >> 62) + (turn >> 63))
    one = np.float64(turn.view(np.int64) >> 32) * UNIT_32
    other = np.float64(turn & LOW_32) * UNIT_64
    behind = np.float64(product_low << 2 >> 11) * UNIT_117
    total = one + other
    behind += other - (total - one)
    high = total + behind
    behind -= high - total
    # Times pi/2, where the first product is exact.
    head = (high.view(np.int64) & BITS_26).view(np.float64)
    product = head * HALF_PI_HIGH
    added = head * HALF_PI_LOW + (high - head + behind) * HALF_PI
    r = product + added
    return k, r + (size - size), product - r + added
