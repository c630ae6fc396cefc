"""NumPy references of UNIFORM and NORMAL."""

import numpy as np

from jitkernels.attrs.random_numbers import NormalAttr, RandomAttr, UniformAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray

MASK = np.uint64(0xFFFFFFFF)
FACTORS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10


def philox(counter: AnyArray, key: tuple[int, int]) -> AnyArray:
    """Philox4x32-10 of each column of four words of 32 bits."""
    a, b, c, d = (row.astype(np.uint64) for row in counter)
    low, high = key
    for _ in range(ROUNDS):
        first, second = FACTORS[0] * a, FACTORS[1] * c
        a, b = (second >> np.uint64(32)) ^ b ^ np.uint64(low), second & MASK
        c, d = (first >> np.uint64(32)) ^ d ^ np.uint64(high), first & MASK
        low, high = (low + WEYL[0]) & int(MASK), (high + WEYL[1]) & int(MASK)
    return np.stack([a, b, c, d])


def blocks(attr: RandomAttr, per_block: int) -> tuple[AnyArray, int]:
    """Return the words of the blocks of a call, `per_block` numbers in a block, and the index of the first number."""
    first = attr.offset // per_block
    count = (attr.offset + attr.n + per_block - 1) // per_block - first
    number = np.arange(count, dtype=np.uint64) + np.uint64(first)
    zero = np.zeros_like(number)
    counter = np.stack([number & MASK, number >> np.uint64(32), zero, zero])
    key = attr.seed & int(MASK), attr.seed >> 32
    return philox(counter, key), attr.offset - per_block * first


def pairs(words: AnyArray) -> AnyArray:
    """Two 64-bit words for each block, contiguous."""
    return np.stack([words[1] << np.uint64(32) | words[0], words[3] << np.uint64(32) | words[2]], axis=1)


@implements(UniformAttr)
def uniform(attr: UniformAttr, y: AnyArray) -> None:
    words, start = blocks(attr, 4 if attr.dtype == "float32" else 2)
    if attr.dtype == "float32":
        numbers = (words.T >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    else:
        numbers = (pairs(words) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    y[...] = numbers.reshape(-1)[start : start + attr.n]


@implements(NormalAttr)
def normal(attr: NormalAttr, y: AnyArray) -> None:
    words, start = blocks(attr, 4 if attr.dtype == "float32" else 2)
    turns: AnyArray | tuple[AnyArray, AnyArray]
    if attr.dtype == "float32":
        lengths, turns = words.T[:, ::2], words.T[:, 1::2].astype(np.float64) * 2.0**-32
        u = ((lengths >> np.uint64(1)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-31)
    else:
        both = pairs(words)
        u = ((both[:, :1] >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        whole = both[:, 1:] + np.uint64(1 << 61) >> np.uint64(62)  # quarters of a turn, the nearest
        rest = (both[:, 1:] - (whole << np.uint64(62))).view(np.int64)
        turns = whole.astype(np.float64) / 4, rest.astype(np.float64) * 2.0**-64
    radius = np.sqrt(-2 * np.log(u.astype(np.float64)))
    y[...] = cosines_and_sines(radius, turns).reshape(-1)[start : start + attr.n]


def cosines_and_sines(radius: AnyArray, turns: AnyArray | tuple[AnyArray, AnyArray]) -> AnyArray:
    """Cosine and sine of so many turns, interleaved; the angles are exact to the last bit near their zeros."""
    if not isinstance(turns, tuple):
        quarters = np.rint(4 * turns)
        turns = quarters / 4, turns - quarters / 4
    quarters, angle = (4 * turns[0]).astype(np.int64) % 4, 2 * np.pi * turns[1]
    cosine, sine = np.cos(angle), np.sin(angle)
    across = np.choose(quarters, [cosine, -sine, -cosine, sine])
    up = np.choose(quarters, [sine, cosine, -sine, -cosine])
    return np.stack([radius * across, radius * up], axis=-1)
