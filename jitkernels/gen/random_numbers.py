"""Generated UNIFORM and NORMAL: whole blocks in vectors, single numbers where a call begins or ends within a block."""

from typing import Any

import numpy as np

from jitkernels.attrs.random_numbers import NormalAttr, RandomAttr, UniformAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, noinline
from jitkernels.microkernels.maths.log import joined_float32, joined_float64, parts_float32, parts_float64
from jitkernels.microkernels.maths.philox import block_of
from jitkernels.microkernels.maths.sincos_kernel import cosine_float32, cosine_float64, sine_float32, sine_float64
from jitkernels.microkernels.tuning_space import widths_and_threads

MIN_THREAD_NUMBERS = 8192
"""Least number of elements per thread."""
EIGHT, ELEVEN, HALF = np.uint64(8), np.uint64(11), np.uint64(32)
UNIT_32, UNIT_64 = np.float32(2.0**-24), np.float64(2.0**-53)
UNIT_31, MIDDLE_32, MIDDLE_64 = np.float32(2.0**-31), np.float32(0.5), np.float64(0.5)
TURN_32, TURN_64 = np.float32(2 * np.pi / 2**32), np.float64(2 * np.pi / 2**64)
EIGHTH_32, QUARTER_32 = np.uint64(1 << 29), np.uint64(30)
EIGHTH_64, QUARTER_64 = np.uint64(1 << 61), np.uint64(62)
ZERO_32, ZERO_64 = np.float32(0), np.float64(0)
MINUS_TWO_32, MINUS_TWO_64 = np.float32(-2), np.float64(-2)


@inlined()
def unit_float32(word: Any) -> Any:
    return np.float32(np.int32(word >> EIGHT)) * UNIT_32


@inlined()
def unit_float64(low: Any, high: Any) -> Any:
    return np.float64(np.int64((high << HALF | low) >> ELEVEN)) * UNIT_64


@inlined()
def uniform_float32(number: int, seed: int) -> Any:
    """The four numbers of a block."""
    a, b, c, d = block_of(number, seed)
    return unit_float32(a), unit_float32(b), unit_float32(c), unit_float32(d)


@inlined()
def uniform_float64(number: int, seed: int) -> Any:
    """The two numbers of a block."""
    a, b, c, d = block_of(number, seed)
    return unit_float64(a, b), unit_float64(c, d)


@inlined()
def pair_float32(length: Any, turn: Any) -> Any:
    """Two normal numbers from two words (Box-Muller)."""
    u = (np.float32(np.int32(length >> np.uint64(1))) + MIDDLE_32) * UNIT_31
    k, f = parts_float32(u)
    radius = np.sqrt(MINUS_TWO_32 * joined_float32(k, f))
    quarters = np.int32((turn + EIGHTH_32) >> QUARTER_32)
    angle = np.float32(np.int32(turn - (np.uint64(quarters) << QUARTER_32))) * TURN_32
    cosine, sine = radius * cosine_float32(angle, ZERO_32), radius * sine_float32(angle, ZERO_32)
    across, up = (sine, cosine) if quarters & 1 else (cosine, sine)
    return -across if (quarters + 1) & 2 else across, -up if quarters & 2 else up


@inlined()
def pair_float64(length: Any, turn: Any) -> Any:
    """Two normal numbers from two 64-bit words (Box-Muller)."""
    u = (np.float64(np.int64(length >> ELEVEN)) + MIDDLE_64) * UNIT_64
    k, f = parts_float64(u)
    radius = np.sqrt(MINUS_TWO_64 * joined_float64(k, f))
    quarters = np.int64((turn + EIGHTH_64) >> QUARTER_64)
    angle = np.float64(np.int64(turn - (np.uint64(quarters) << QUARTER_64))) * TURN_64
    cosine, sine = radius * cosine_float64(angle, ZERO_64), radius * sine_float64(angle, ZERO_64)
    across, up = (sine, cosine) if quarters & 1 else (cosine, sine)
    return -across if (quarters + 1) & 2 else across, -up if quarters & 2 else up


@inlined()
def normal_float32(number: int, seed: int) -> Any:
    """The four numbers of a block."""
    a, b, c, d = block_of(number, seed)
    first, second = pair_float32(a, b)
    third, fourth = pair_float32(c, d)
    return first, second, third, fourth


@inlined()
def normal_float64(number: int, seed: int) -> Any:
    """The two numbers of a block."""
    a, b, c, d = block_of(number, seed)
    return pair_float64(b << HALF | a, d << HALF | c)


def variants(attr: RandomAttr) -> list[Variant]:
    return widths_and_threads(attr.n // MIN_THREAD_NUMBERS)


def range_kernel(attr: RandomAttr, numbers_of: Any, variant: dict[str, Any]) -> RangeKernel:
    per_block = 4 if attr.dtype == "float32" else 2

    @noinline()
    def number_at(index: int, seed: int) -> Any:
        if per_block == 4:
            a, b, c, d = numbers_of(index // per_block, seed)
            lower, upper = b if index & 1 else a, d if index & 1 else c
            return upper if index & 2 else lower
        else:  # noqa: RET505  # the branch not taken is not looked at
            a, b = numbers_of(index // per_block, seed)
            return b if index & 1 else a

    def body(y: Any, n: int, seed: int, offset: int, begin: int, end: int) -> None:
        first, last = (offset + begin + per_block - 1) // per_block, (offset + end) // per_block
        is_within = first > last
        for i in range(begin, end if is_within else per_block * first - offset):
            y[i] = number_at(offset + i, seed)
        for block in range(first, last):
            i = per_block * block - offset
            if per_block == 4:
                a, b, c, d = numbers_of(block, seed)
                y[i] = a
                y[i + 1] = b
                y[i + 2] = c
                y[i + 3] = d
            else:
                a, b = numbers_of(block, seed)
                y[i] = a
                y[i + 1] = b
        for i in range(end if is_within else per_block * last - offset, end):
            y[i] = number_at(offset + i, seed)

    signature = attr.signature()
    return RangeKernel(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("n"),
        block=MIN_THREAD_NUMBERS,
        flags=(),  # the same bits in vectors and in scalar code
        **variant,
    )


@implements(UniformAttr, variants=variants)
def uniform(attr: UniformAttr, **variant: Any) -> RangeKernel:
    return range_kernel(attr, uniform_float32 if attr.dtype == "float32" else uniform_float64, variant)


@implements(NormalAttr, variants=variants)
def normal(attr: NormalAttr, **variant: Any) -> RangeKernel:
    return range_kernel(attr, normal_float32 if attr.dtype == "float32" else normal_float64, variant)
