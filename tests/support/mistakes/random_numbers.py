"""UNIFORM and NORMAL, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

WORD = np.uint64(0xFFFFFFFF)
MISTAKES = {
    "uniform": {
        "the offset is forgotten": ("place = attr.offset + ", "place = "),
        "blocks of four of float64": ("2 if wide else 4", "4"),
        "the tail comes from another block": ("(place // each)", "(place // each // 2 * 2)"),
        "upper and lower words change places": ("[words[0], words[2]]", "[words[1], words[3]]"),
        "of all bits, so that 1 comes out": (">> np.uint64(8)", ">> np.uint64(0)"),
    },
    "normal": {
        "the offset is forgotten": ("place = attr.offset + ", "place = "),
        "the cosine of every number": ("place % 2 == 0", "place >= 0"),
        "half the variance": ("-2 * np.log", "-np.log"),
        "half a turn": ("2 * np.pi", "np.pi"),
        "length and turn are one word": ("turn = words[1]", "turn = words[0]"),
        "the tail of the distribution is cut": ("+ 0.5", "+ 4096"),
    },
}


def words_of(seed: int, block: AnyArray) -> AnyArray:
    """Philox4x32-10 of the blocks of these numbers."""
    zero = np.zeros_like(block)
    a, b, c, d = (word.astype(np.uint64) for word in (block & 0xFFFFFFFF, block >> 32, zero, zero))
    low, high = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        first, second = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, b = second >> np.uint64(32) ^ b ^ np.uint64(low), second & WORD
        c, d = first >> np.uint64(32) ^ d ^ np.uint64(high), first & WORD
        low, high = low + 0x9E3779B9 & 0xFFFFFFFF, high + 0xBB67AE85 & 0xFFFFFFFF
    return np.stack([a, b, c, d])


def joined(words: AnyArray) -> AnyArray:
    return np.stack([words[1] << np.uint64(32) | words[0], words[3] << np.uint64(32) | words[2]])


def uniform(attr: Any, y: AnyArray) -> None:
    wide = attr.dtype == "float64"
    each = 2 if wide else 4
    place = attr.offset + np.arange(attr.n)
    words, odd, i = words_of(attr.seed, (place // each)), place % each, np.arange(attr.n)
    if wide:
        both = np.where(odd == 1, words[3], words[1]) << np.uint64(32)
        both |= np.choose(odd, [words[0], words[2]])
        y[...] = (both >> np.uint64(11)) * 2.0**-53
    else:
        y[...] = (words[odd, i] >> np.uint64(8)) * 2.0**-24


def normal(attr: Any, y: AnyArray) -> None:
    wide = attr.dtype == "float64"
    place = attr.offset + np.arange(attr.n)
    words = words_of(attr.seed, place // (2 if wide else 4))
    if wide:
        words = joined(words)
    elif attr.n:
        words = np.where(place % 4 > 1, words[2:], words[:2])
    turn = words[1]
    dropped, bits = (11, 64) if wide else (1, 32)
    length = ((words[0] >> np.uint64(dropped)).astype(attr.dtype) + 0.5).astype(attr.dtype)
    u = length.astype(np.longdouble) * np.longdouble(2) ** (dropped - bits)
    eighth = np.uint64(1 << bits - 3)
    quarters = turn + eighth >> np.uint64(bits - 2)
    rest = (turn - (quarters << np.uint64(bits - 2))).view(np.int64)
    angle = rest * np.longdouble(2) ** -bits * 2 * np.pi
    radius, quarters = np.sqrt(-2 * np.log(u)), (quarters % np.uint64(4)).astype(np.int64)
    cosine = np.choose(quarters, [np.cos(angle), -np.sin(angle), -np.cos(angle), np.sin(angle)])
    sine = np.choose(quarters, [np.sin(angle), np.cos(angle), -np.sin(angle), -np.cos(angle)])
    y[...] = radius * np.where(place % 2 == 0, cosine, sine)
