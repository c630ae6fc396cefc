"""Serpentine order: loop nests in loops traverse data larger than L1 alternately forwards and backwards.

Caches keep what was read last. A nest that starts at the first row of a matrix in every iteration finds nothing of it
there: the last rows evicted the first. One that reverses at the end finds as much as the cache holds: what it has
read itself, or a nest before it.
"""

from collections.abc import Sequence

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.schedule.nest.loop_order import Loops

SHARED_BYTES = 4 << 10
"""The least bytes of an array for which it matters that another nest has just traversed it."""
MIN_SERPENTINE_BYTES, MAX_SERPENTINE_BYTES = 20 << 10, 1 << 20
"""The bytes that all rows load, in the traced call: less stays in L1 anyway, and of more too little does."""


def serpentine_words(own: Loops, streamed: tuple[int, ...]) -> frozenset[int]:
    """The frame words of the arrays that rows traverse in serpentine order; none where they do not."""
    loop = own.parallel_loop
    if not own.is_in_loop or loop is None or loop == own.lane_loop:
        return frozenset()
    if own.directions or streamed or own.scanned or own.short_lanes:
        return frozenset()
    read = [pair for target in own.targets for pair in own.values.needed(target.node, target.index_map)]
    bytes_read = bytes_along(own, loop, [(own.values.arrays.get(node), index_map) for node, index_map in read])
    if not MIN_SERPENTINE_BYTES <= sum(bytes_read.values()) <= MAX_SERPENTINE_BYTES:
        return frozenset()
    bytes_written = bytes_along(
        own, loop, [(target.array, target.where or target.index_map) for target in own.targets]
    )  # fmt: skip
    return frozenset(word for word, size in {**bytes_written, **bytes_read}.items() if size >= SHARED_BYTES)


def bytes_along(own: Loops, loop: int, accesses: Sequence[tuple[StridedArray | None, IndexMap]]) -> dict[int, int]:
    """By frame word, the bytes of an array that a loop traverses, different ones in each iteration."""
    result = {}
    for array, access_map in accesses:
        if array is None:
            continue
        steps = array.coefficients(access_map)[1]
        if loop in steps:
            size = symbolic_dims.product(own.extents[step] for step in steps if step in own.extents)
            result[array.word] = symbolic_dims.value_of(size) * NUMBERS[array.dtype].size
    return result
