"""Distributions of NumPy's generators, step by step as NumPy draws them, so that the results have the same bits.

The trace rewrites the loops and branches of these functions. `bits` is a `BitGenerator`. Products are rounded before
they are added, as in code with loops.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.random.ziggurat_tables import (
    EXPONENTIAL_DENSITIES,
    EXPONENTIAL_LIMITS,
    EXPONENTIAL_TAIL,
    EXPONENTIAL_WIDTHS,
    NORMAL_DENSITIES,
    NORMAL_LIMITS,
    NORMAL_TAIL,
    NORMAL_TAIL_RATE,
    NORMAL_WIDTHS,
)
from jitkernels.compiler.ir.special_functions import libm_exp, libm_log, libm_log1p

LOWER = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
TWISTED, SHIFT, KNUTH = 624, 397, np.uint32(1812433253)
MATRIX, UPPER_BIT, LOWER_BITS = np.uint32(0x9908B0DF), np.uint32(0x80000000), np.uint32(0x7FFFFFFF)


def half_word(bits: Any) -> Any:
    """The next 32 bits of a generator of 64 bits: the half that was left over, or the lower half of a new word."""
    result = bits.uinteger.value
    if bits.has_uint32.value == np.uint32(0):
        word = bits.next_uint64()
        bits.uinteger.value = word >> HALF
        bits.has_uint32.value = np.uint32(1)
        result = np.uint32(word & LOWER)
    else:
        bits.has_uint32.value = np.uint32(0)
    return result


def twister_word(bits: Any) -> Any:
    """The next word of MT19937 before it is tempered; all 624 are made again when they are used up."""
    key = bits.key
    position = int(bits.position.value)
    if position == TWISTED:
        for i in range(TWISTED):
            following = (i + 1) % TWISTED
            y = (key[i] & UPPER_BIT) | (key[following] & LOWER_BITS)
            key[i] = key[(i + SHIFT) % TWISTED] ^ (y >> np.uint32(1)) ^ (MATRIX if y & np.uint32(1) else np.uint32(0))
        position = 0
    bits.position.value = position + 1
    return key[position]


def seed_twister(bits: Any, seed: Any) -> None:
    """Seed MT19937 by an int of 32 bits (Knuth's generator), as ``numpy.random.seed`` does."""
    word = np.uint32(seed)
    for i in range(TWISTED):
        bits.key[i] = word
        word = KNUTH * (word ^ (word >> np.uint32(30))) + np.uint32(i + 1)
    bits.position.value = TWISTED


def philox_word(bits: Any) -> Any:
    """The next of four words of Philox."""
    position = int(bits.position.value)
    if position >= 4:
        first, second, third, fourth = bits.block()
        bits.buffer[0] = first
        bits.buffer[1] = second
        bits.buffer[2] = third
        bits.buffer[3] = fourth
        position = 0
    bits.position.value = position + 1
    return bits.buffer[position]


def standard_normal(bits: Any) -> Any:
    """A standard normal number, by the ziggurat method: the first point below the density."""
    result = np.float64(0.0)
    searching = True
    while searching:
        word = bits.next_uint64()
        layer = bits.layer(word)
        word = word >> np.uint64(8)
        steps = (word >> np.uint64(1)) & np.uint64(0x000FFFFFFFFFFFFF)
        result = np.float64(steps) * bits.entry(NORMAL_WIDTHS, layer)
        if word & np.uint64(1):
            result = -result
        if steps < bits.entry(NORMAL_LIMITS, layer):
            searching = False
        elif layer == 0:
            result = normal_tail(bits, (steps >> np.uint64(8)) & np.uint64(1))
            searching = False
        else:
            difference = bits.entry(NORMAL_DENSITIES, layer - 1) - bits.entry(NORMAL_DENSITIES, layer)
            height = difference * bits.next_double() + bits.entry(NORMAL_DENSITIES, layer)
            if height < libm_exp(np.float64(-0.5) * result * result):
                searching = False
    return result


def normal_tail(bits: Any, is_negative: Any) -> Any:
    """A point of the tail (Marsaglia), by rejection of exponential points."""
    x = np.float64(0.0)
    searching = True
    while searching:
        x = np.float64(-NORMAL_TAIL_RATE) * libm_log1p(-bits.next_double())
        y = -libm_log1p(-bits.next_double())
        searching = not (y + y > x * x)
    x = np.float64(NORMAL_TAIL) + x
    return -x if is_negative else x


def standard_exponential(bits: Any) -> Any:
    """A standard exponential number, by the ziggurat method."""
    result = np.float64(0.0)
    searching = True
    while searching:
        word = bits.next_uint64() >> np.uint64(3)
        layer = bits.layer(word)
        steps = word >> np.uint64(8)
        result = np.float64(steps) * bits.entry(EXPONENTIAL_WIDTHS, layer)
        if steps < bits.entry(EXPONENTIAL_LIMITS, layer):
            searching = False
        elif layer == 0:
            result = np.float64(EXPONENTIAL_TAIL) - libm_log1p(-bits.next_double())
            searching = False
        else:
            difference = bits.entry(EXPONENTIAL_DENSITIES, layer - 1) - bits.entry(EXPONENTIAL_DENSITIES, layer)
            height = difference * bits.next_double() + bits.entry(EXPONENTIAL_DENSITIES, layer)
            if height < libm_exp(-result):
                searching = False
    return result


def inverted_exponential(bits: Any) -> Any:
    """A standard exponential number, by inversion."""
    return -libm_log1p(-bits.next_double())


def legacy_exponential(bits: Any) -> Any:
    """A standard exponential number of ``numpy.random``."""
    return -libm_log(np.float64(1.0) - bits.next_double())


def legacy_normal(bits: Any, kept: Any) -> Any:
    """A standard normal number of ``numpy.random``, by the polar method, which keeps its second number back."""
    result = kept.number.value
    if kept.is_there.value == np.int32(0):
        first = second = square = np.float64(0.0)
        searching = True
        while searching:
            first = np.float64(2.0) * bits.next_double() - np.float64(1.0)
            second = np.float64(2.0) * bits.next_double() - np.float64(1.0)
            square = first * first + second * second
            searching = square >= np.float64(1.0) or square == np.float64(0.0)
        factor = np.sqrt(np.float64(-2.0) * libm_log(square) / square)
        kept.number.value = factor * first
        kept.is_there.value = np.int32(1)
        result = factor * second
    else:
        kept.number.value = np.float64(0.0)
        kept.is_there.value = np.int32(0)
    return result


def bounded(bits: Any, spread: Any) -> Any:
    """A word in [0, spread], without bias (Lemire)."""
    result = np.uint64(0)
    if spread == np.uint64(0):
        pass
    elif spread < LOWER:
        result = _bounded_by_half(bits, spread)
    elif spread == LOWER:
        result = np.uint64(bits.next_uint32())
    elif spread == np.uint64(0xFFFFFFFFFFFFFFFF):
        result = bits.next_uint64()
    else:
        result = _bounded_by_word(bits, spread)
    return result


def _bounded_by_half(bits: Any, spread: Any) -> Any:
    """The same by products of 32 bits."""
    count = spread + np.uint64(1)
    product = np.uint64(bits.next_uint32()) * count
    if (product & LOWER) < count:
        threshold = (LOWER - spread) % count
        while (product & LOWER) < threshold:
            product = np.uint64(bits.next_uint32()) * count
    return product >> HALF


def _bounded_by_word(bits: Any, spread: Any) -> Any:
    """The same by products of 64 bits."""
    count = spread + np.uint64(1)
    word = bits.next_uint64()
    if word * count < count:
        threshold = (np.uint64(0xFFFFFFFFFFFFFFFF) - spread) % count
        while word * count < threshold:
            word = bits.next_uint64()
    return bits.high_product(word, count)


def masked(bits: Any, spread: Any) -> Any:
    """A word in [0, spread], by rejection of words of as many bits: of ``numpy.random``, and of permutations."""
    mask = spread | (spread >> np.uint64(1))
    mask = mask | (mask >> np.uint64(2))
    mask = mask | (mask >> np.uint64(4))
    mask = mask | (mask >> np.uint64(8))
    mask = mask | (mask >> np.uint64(16))
    mask = mask | (mask >> np.uint64(32))
    result = np.uint64(0)
    if spread == np.uint64(0):
        pass
    elif spread <= LOWER:
        result = np.uint64(bits.next_uint32()) & mask
        while result > spread:
            result = np.uint64(bits.next_uint32()) & mask
    else:
        result = bits.next_uint64() & mask
        while result > spread:
            result = bits.next_uint64() & mask
    return result


def once(bits: Any, draw: Any) -> Any:
    """One number, drawn in a loop of one iteration, as products are contracted elsewhere."""
    result = np.float64(0.0)
    missing = True
    while missing:
        result = draw(bits)
        missing = False
    return result


def check_range(low: Any, high: Any, endpoint: bool) -> None:
    """Raise for an empty range, as the plain function does, with its message."""
    if low > high or (low == high and not endpoint):
        raise ValueError


def check_seed(seed: Any) -> None:
    """Raise for a seed of more than 32 bits."""
    if seed < 0 or seed > 0xFFFFFFFF:
        raise ValueError


def check_spread(spread: Any) -> None:
    """Raise for a range of floats that is negative or not finite."""
    if not (spread >= np.float64(0.0) and np.isfinite(spread)):
        raise ValueError


def check_scale(scale: Any) -> None:
    """Raise for a scale with a sign."""
    if np.signbit(scale):
        raise ValueError


def fill(bits: Any, draw: Any, flat: Any) -> None:
    """Draw the elements of an array one after the other."""
    for i in range(len(flat)):
        flat[i] = draw(bits)


def shuffled(bits: Any, flat: Any) -> None:
    """Shuffle an array in place (Fisher and Yates)."""
    for i in range(len(flat) - 1, 0, -1):
        j = bits.index(i)
        last = flat[i]
        flat[i] = flat[j]
        flat[j] = last
