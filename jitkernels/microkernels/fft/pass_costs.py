"""Estimates of the cycles of transforms, by which rows are transformed one by one, or as many at once as vectors hold.

Vectors along a row are full in long rows alone, and the last pass transposes in registers. Rows beside each other fill
all vectors, but their numbers have to be copied there and back. Constants are measured on a Zen 4.
"""

from typing import Any

from jitkernels.codegen.source_protocol import inlined, noinline
from jitkernels.microkernels.fft.factors import LEAST_ANY_RADIX

PASS_CYCLES = 60
"""What a pass takes besides its vectors: its call, and the latency of a butterfly."""
NUMBER_CYCLES = 5
"""Of a vector of numbers in the butterfly of a short radix: loads, stores, roots and sums."""
COPY_CYCLES = 4
"""Of copying one number to the vectors and its result back."""
CONVOLUTION_CYCLES = 40
"""Of a vector of numbers in a convolution, besides its two transforms: three products, and clearing."""
FEW_BLOCKS = 3
UNLIMITED_CYCLES = 1 << 40


@inlined()
def butterfly_cycles(radix: int) -> int:
    """A vector of butterflies: of large primes a product by a matrix, of short ones few operations for each number."""
    return radix * (radix if radix >= 2 * NUMBER_CYCLES and radix != 16 else NUMBER_CYCLES)


@inlined()
def transpose_cycles(radix: int) -> int:
    """Taking vectors of neighbours apart: a permutation for each step of radix two, or for each pair of numbers."""
    if radix >= LEAST_ANY_RADIX:
        return 0
    return 4 * radix * (4 if radix == 16 else (3 if radix == 8 else radix))


@inlined()
def transposes(radix: int, ido: int, l1: int) -> bool:
    """Whether a pass over the numbers of one transform transposes in registers: the last one, of more than few blocks.

    Few butterflies, one number of each of which fills a vector, take less than a transpose.
    """
    return ido == 1 and (radix == 16 or (l1 > FEW_BLOCKS and radix < LEAST_ANY_RADIX))


@noinline()
def row_cycles(radices: Any, n: int, lanes: int) -> int:
    """The passes of one row, whose numbers are beside each other."""
    total, ido, l1 = 0, n, 1
    for t in range(radices[0]):
        radix = radices[1 + t]
        ido = ido // radix
        vectors = l1 * ((ido + lanes - 1) // lanes)
        if transposes(radix, ido, l1):
            vectors = (l1 + lanes - 1) // lanes
            total += vectors * transpose_cycles(radix)
        total += PASS_CYCLES + vectors * butterfly_cycles(radix)
        l1 *= radix
    return total


@noinline()
def vector_cycles(radices: Any, n: int) -> int:
    """As many rows as a vector has lanes, beside each other: reading, all passes, and writing."""
    total = 2 * NUMBER_CYCLES * n
    for t in range(radices[0]):
        radix = radices[1 + t]
        total += PASS_CYCLES + n // radix * butterfly_cycles(radix)
    return total
