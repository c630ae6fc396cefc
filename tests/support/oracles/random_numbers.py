"""The oracle of UNIFORM and NORMAL: one counter after another, in Python integers."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle

MASK = 0xFFFFFFFF


def philox(counter: tuple[int, ...], key: tuple[int, int]) -> tuple[int, ...]:
    """Return Philox4x32-10 as its paper defines it."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ low, second & MASK, (first >> 32) ^ d ^ high, first & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return a, b, c, d


@functools.lru_cache(maxsize=8)
def philox_of_block(block: int, seed: int) -> int:
    """Return the words of a block, joined, the first one lowest."""
    block_words = philox((block & MASK, block >> 32, 0, 0), (seed & MASK, seed >> 32))
    return sum(word << 32 * i for i, word in enumerate(block_words))


def words(attr: Any, each: int) -> Iterator[tuple[int, int]]:
    """Return for each index of a call the index in its block and the joined words of the block."""
    for index in range(attr.offset, attr.offset + attr.n):
        block, within = divmod(index, each)
        yield within, philox_of_block(block, attr.seed)


@oracle
@functools.lru_cache(maxsize=256)
def uniform(attr: Any) -> list[AnyArray]:
    if attr.dtype == "float32":
        uniforms = [(joined >> 32 * i + 8 & (1 << 24) - 1) / (1 << 24) for i, joined in words(attr, 4)]
    else:
        uniforms = [(joined >> 64 * i + 11 & (1 << 53) - 1) / (1 << 53) for i, joined in words(attr, 2)]
    return [np.array(uniforms, WIDE)]


@oracle
@functools.lru_cache(maxsize=256)
def normal(attr: Any) -> list[AnyArray]:
    bits, each = (32, 4) if attr.dtype == "float32" else (64, 2)
    return [np.array([_normal(i, joined, bits) for i, joined in words(attr, each)], WIDE)]


def _normal(within: int, joined: int, bits: int) -> Any:
    pair = joined >> 2 * bits * (within // 2)
    length, turn = pair & (1 << bits) - 1, pair >> bits & (1 << bits) - 1
    if bits == 32:
        u = WIDE(np.float32(length >> 1) + np.float32(0.5)) / WIDE(2) ** 31
    else:
        u = WIDE(np.float64(length >> 11) + 0.5) / WIDE(2) ** 53
    quarters = turn + (1 << bits - 3) >> bits - 2
    angle = WIDE(turn - (quarters << bits - 2)) / WIDE(2) ** bits * 2 * WIDE("3.14159265358979323846264338327950288")
    sine, cosine = np.sin(angle), np.cos(angle)
    both = [(cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine)][quarters % 4]
    return np.sqrt(-2 * np.log(u)) * both[within % 2]
